"""API server -> objects.

In: HTTP responses and watch streams of a Kubernetes API server.
Out: `objects`, delivered to a Sink as they change.
Owns: the HTTP session, credentials and resource versions, as their only writer.
Never: knows DNS messages or records; a name is only checked for being a DNS label.

`clusterwatch` is the front.  The data's way: `session` (bytes) -> `watchstream` or `liststream`
(events) -> `reflector` (`holdings`: what is new?) -> `project` (objects) -> `delivery`, for slices by way
of `sliceunion` -> Sink.
"""
