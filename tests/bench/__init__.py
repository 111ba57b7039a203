"""What the record server costs, measured on the real process: `make bench`, `make bench-cluster`.

Nothing here is a test: the figures depend on the machine, so they are compared with a C echo and other
servers of the same run.  `speed` asks, `scale` looks at memory, sync, stalls and propagation.
"""
