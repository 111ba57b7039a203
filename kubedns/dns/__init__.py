"""DNS itself: names, numbers, and messages as octets.

In: octets from a socket, or names as text.
Out: labels, queries, replies, records; one exchange with a server (`client`).
Owns: nothing.
Never: imports another room; `client` and `whole` alone do I/O.
"""
