"""Bytes in, bytes out, over UDP and TCP.

In: datagrams and length-framed streams.
Out: each message handed to a responder, its reply sent back to where it came from.
Owns: the server's sockets and connection buffers.
Never: reads DNS beyond the length prefix of TCP.
"""
