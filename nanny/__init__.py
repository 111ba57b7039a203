"""dnsmasq-nanny: runs a real dnsmasq as a child and restarts it when its configuration changes."""
