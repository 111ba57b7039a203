"""dnsmasq-nanny: runs a real dnsmasq as a child and restarts it when its configuration changes.

In: the command line, the configuration directory, names of servers to resolve, signals.
Out: one dnsmasq process with checked arguments, its log lines, metrics, an exit status.
Owns: the child and its process group; the state machine in `supervisor` alone decides.
Never: answers DNS itself, or lets a value that was not checked reach dnsmasq.
"""
