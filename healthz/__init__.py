"""exechealthz: commands and DNS probes on a period -> the answers of liveness probes, metrics, a page.

In: a command's exit status, a DNS server's reply, dnsmasq's statistics, kubedns's readiness.
Out: HTTP: 200 or 503 for each url from the last result, metrics, the page at `/`.
Owns: the checks (`results`), each written by the one task that runs it; the child processes.
Never: changes what it looks at, runs anything because of an HTTP request, imports kubedns's rooms.
"""
