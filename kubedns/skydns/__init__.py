"""Question bytes -> answer bytes.

In: one DNS message as bytes, and a `backend.Backend` to read.
Out: one DNS message as bytes, or nothing.
Owns: the list of upstream name servers and the questions in flight.
Never: knows Kubernetes words.
"""
