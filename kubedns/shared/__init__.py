"""What all three programs use.

In: text and bytes from the command line, a directory, a socket.
Out: checked values: flags, durations, configuration, DNS exchanges, log lines.
Owns: nothing that lives longer than a call, but for the logging set-up.
Never: imports another room, or knows Kubernetes objects.
"""
