"""Question bytes -> answer bytes.

In: one DNS message as bytes, and a `backend.Backend` to read.
Out: one DNS message as bytes, or nothing.
Owns: what is packed in `Subtree.packed`: it alone fills it, and nothing there is changed by others.
Never: knows Kubernetes words.
"""
