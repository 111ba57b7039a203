"""Cluster DNS for Kubernetes: the record server of the kube-dns add-on.

The rooms are the sub-packages; what passes between them stands at this level.
`app` is the only module that knows every room.
"""

__version__ = "0.2.0"
