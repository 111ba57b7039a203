"""The add-on without a cluster: an in-memory Kubernetes API, and all programs on one machine.

In: manifests, a command line.
Out: a running add-on of five processes, its log lines, a demonstration with checked answers.
Owns: the child processes; in `api`, the objects.
Never: imports the record server's rooms; it starts the programs as processes.
"""
