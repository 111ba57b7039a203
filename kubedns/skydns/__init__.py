"""Question bytes -> answer bytes.

In: one DNS message as bytes, and a `backend.Backend` to read.
Out: one DNS message as bytes, or nothing.
Owns: the answers it keeps at the sub-trees of the backend.
Never: knows Kubernetes words.
"""
