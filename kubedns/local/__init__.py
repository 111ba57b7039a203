"""The add-on without a cluster: an in-memory Kubernetes API, and all programs on one machine.

In: manifests, HTTP requests as kubectl and kubedns send them.
Out: HTTP responses as a real API server gives them; a running add-on.
Owns: the objects of the in-memory API and their resource versions.
Never: imports the record server's rooms; it starts the programs as processes.
"""
