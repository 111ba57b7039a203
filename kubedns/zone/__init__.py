"""Objects -> what the server is authoritative for.

In: changes of `objects`.
Out: a `backend.Backend`.
Owns: the label tree, the reverse map and the cluster-IP map, as their only writer.
Never: awaits, reads a clock, opens a socket, sees API JSON.
"""
