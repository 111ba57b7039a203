"""Counters, metrics and status pages of the record server.

In: counts from every room, and functions that look at the state.
Out: Prometheus series and the HTTP pages of health, readiness, the tree and the metrics.
Owns: the counters.
Never: changes what it shows.
"""
