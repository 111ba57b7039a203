"""Names of others -> what other name servers say.

In: a client's query as bytes, or a name that an alias leads to.
Out: the reply as bytes, or a `resolution.Resolution`.
Owns: the upstream servers, their sockets, and the questions in flight.
Never: reads the zone's records except to find a server given by name.
"""
