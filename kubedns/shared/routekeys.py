"""The keys that say who answers for a name: `federations`, `stubDomains`, `upstreamNameservers`.

In: the text of a key, and the cluster domain in lower case without final dot.  Out: its value in
canonical form; what is wrong goes into the findings, or is raised as ValueError.
"""

from typing import Any, Final

from kubedns.dns.names import is_dns_1123_label, parse_name, quoted
from kubedns.shared.keyforms import Findings, Form, type_name
from kubedns.shared.servers import ServerAddress, doubt_about_port, parse_server

MOST_UPSTREAMS: Final = 3
_UPSTREAMS: Final = Form(list, '["192.0.2.53", "[2001:db8::53]:5353"]')
_STUBS: Final = Form(dict, '{"corp.example": ["192.0.2.53"]}')
_FEDERATIONS: Final = Form(dict, '{"name": "domain.example"}, or name=domain.example,name=domain.example')


def federations(text: str, apex: str, found: Findings) -> dict[str, str]:
    """Return name -> domain."""
    if "=" in text and not text.lstrip().startswith(("{", "[", '"')):
        return parse_federations(text)
    named: dict[str, str] = {}
    for name, target in (_FEDERATIONS.parse(text) or {}).items():
        if not isinstance(target, str):
            found.faults.append(
                f"domain of federation {quoted(name)} must be a string, not {type_name(target)}"
            )
            continue
        try:
            label, federation_domain = parse_federation(name, target)
        except ValueError as error:
            found.faults.append(str(error))
            continue
        if label in named:
            found.faults.append(f"federation {quoted(label)} is named twice, in different case")
        named[label] = federation_domain
    return named


def stub_domains(text: str, apex: str, found: Findings) -> dict[str, tuple[ServerAddress, ...]]:
    """Return domain -> its servers, at least one each."""
    stubs: dict[str, tuple[ServerAddress, ...]] = {}
    for name, servers in (_STUBS.parse(text) or {}).items():
        try:
            stub = _stub_name(name, apex)
        except ValueError as error:
            found.faults.append(f"stub domain {error}")
            continue
        if stub in stubs:
            found.faults.append(f"stub domain {quoted(stub)} is named twice, in different spelling")
        stubs[stub] = _servers(servers, f"stub domain {quoted(name)}: ", found, hostnames=True)
        if servers == []:
            found.idle.append(f"stub domain {quoted(name)} has no servers and no effect")
    return {stub: servers for stub, servers in stubs.items() if servers}


def _stub_name(name: str, apex: str) -> str:
    """Return the canonical name of a stub domain, which may be above the cluster domain: the longer one wins."""
    stub = parse_name(name)
    if apex and stub == apex:
        raise ValueError(f"{quoted(name)} is the cluster domain, which is answered by kube-dns itself")
    if apex and stub.endswith(f".{apex}"):
        raise ValueError(f"{quoted(name)} is inside the cluster domain {apex}, where only kube-dns answers")
    return stub


def upstream_nameservers(text: str, apex: str, found: Findings) -> tuple[ServerAddress, ...]:
    """Return the servers in order, addresses only."""
    servers = _servers(_UPSTREAMS.parse(text) or [], "", found, hostnames=False)
    if len(servers) > MOST_UPSTREAMS:
        raise ValueError(f"names {len(servers)} servers; at most {MOST_UPSTREAMS} are allowed")
    return servers


def _servers(value: Any, where: str, found: Findings, *, hostnames: bool) -> tuple[ServerAddress, ...]:
    """Return the servers of a JSON array, each once, in order."""
    if not isinstance(value, list):
        advice = _UPSTREAMS.of_servers(value)
        found.faults.append(f"{where}must be a JSON array, not {type_name(value)}; write {advice}")
        return ()
    servers: dict[ServerAddress, None] = {}
    for text in value:
        if not isinstance(text, str):
            found.faults.append(f"{where}a server must be a string, not {type_name(text)}")
            continue
        try:
            servers[parse_server(text, hostnames=hostnames)] = None
        except ValueError as error:
            several = f"; write {_UPSTREAMS.of_servers(text)}" if "," in text else ""
            found.faults.append(f"{where}{error}{several}")
            continue
        if doubt := doubt_about_port(text):
            found.doubts.append(f"{where}{doubt}")
    return tuple(servers)


def parse_federations(text: str) -> dict[str, str]:
    """Return name -> domain of `name=domain,name=domain`, the original's form, of which the last wins.

    Raises ValueError with the reason.
    """
    named: dict[str, str] = {}
    for pair in text.split(",") if text.strip() else ():
        name, equals, federation_domain = (word.strip() for word in pair.partition("="))
        if not equals:
            raise ValueError(f"{quoted(pair.strip())} is not name=domain; write name=domain,name=domain")
        label, target = parse_federation(name, federation_domain)
        named[label] = target
    return named


def parse_federation(name: str, federation_domain: str) -> tuple[str, str]:
    """Return name and domain of a federation in canonical form, or raise ValueError with the reason."""
    label = name.lower()
    if not is_dns_1123_label(label):
        raise ValueError(f"federation name {quoted(name)} is not one DNS-1123 label")
    try:
        return label, parse_name(federation_domain)
    except ValueError as error:
        raise ValueError(f"domain of federation {quoted(name)}: {error}") from error
