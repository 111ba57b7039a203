"""What the record server costs, measured on the real process: `make bench`, `make bench-cluster`.

Nothing here is a test: figures depend on the machine, so they are compared with a C echo and other servers
of the same run.  `speed` asks, `scale` looks at memory, sync, stalls and propagation.

Tried, and not taken.  A cache of whole answers by packet: an answer from the tree's own octets costs one
look-up more, and needs no invalidation.  One recvfrom and one sendto for each datagram, into a buffer
used again and again: the copy and the second slice cost what the allocation did.  Batches of 8 datagrams
instead of 32: a little dearer, and no fairer, since time is what bounds a batch.  Names of Services
found by walking the labels from the left: two look-ups of whole octets do without the walk.  `%b`
formatting of the reply: `join` takes three quarters of its time.  A full garbage collection every few
seconds: 60 ms in one piece after a burst of first questions; what is young is enough.
"""
