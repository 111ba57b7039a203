"""exechealthz: runs commands and DNS probes on a period and answers liveness probes by HTTP."""
