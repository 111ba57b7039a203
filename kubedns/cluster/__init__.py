"""API server -> objects.

In: HTTP responses and watch streams of a Kubernetes API server.
Out: `objects`, delivered to a Sink as they change.
Owns: the HTTP session, credentials and resource versions, as their only writer.
Never: knows DNS words.
"""
