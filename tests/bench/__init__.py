"""What the record server costs, measured on the real process: `make bench`, `make bench-cluster`.

Nothing here is a test: figures depend on the machine, so they are compared with a C echo and other servers
of the same run.  `speed` asks, `scale` looks at memory, sync, stalls and propagation.

Tried, and not taken. One recvfrom and one sendto for each datagram, with whatever size of buffer: a
sixth to a quarter dearer than many in one call. Batches of 8 datagrams instead of 32: a little dearer,
and no fairer, since it is time that bounds a batch. Finding a Service by walking the labels of every
question: two look-ups of its octets do without. Putting replies together with `%b`: `join` takes three
quarters of the time. A full garbage collection every few seconds: 60 ms in one piece after a burst of
new names; a look at what is young is enough. Plain calls for the first two datagrams of a wake-up, which
are cheaper alone: the third, that finds nothing, costs what they save. Receiving again until nothing is
left, before the loop has its turn: no cheaper at any rate. Huge pages for the tree: within the noise,
for 1 MiB more. Changes decoded into typed structures: half of the time of the JSON, a twentieth of that
of a change. A cache of whole replies: not needed.
"""
