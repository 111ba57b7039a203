"""An in-memory Kubernetes API for the kinds that cluster DNS is made of.

In: manifests; HTTP requests as kubectl and kubedns send them; objects given in Python.
Out: HTTP responses as a real API server gives them.
Owns: the objects, their resource versions and their history; cluster IPs and node ports.
Never: runs controllers; a Service without hand-written slices has no endpoints.

The way of a write: `handlers` > `requests` > `registry` (defaults, validation, allocation)
> `store` > `history`, from which `watching` reads.  `server` is the door for everybody else.
"""
