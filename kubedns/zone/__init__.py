"""Objects -> what the server is authoritative for.

In: changes of `objects`.
Out: a `backend.Backend`.
Owns: the tree and the reverse map, as their only writer.  `Subtree.packed` is the answering room's: it
goes with the sub-tree, and is never read here.
Never: awaits, reads a clock, opens a socket, sees API JSON.
"""
