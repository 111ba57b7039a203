"""The name servers of a resolv.conf(5).

In: the path of a file.  Out: its name servers, as glibc reads them: the first three, the keyword
at the start of a line, options and search lists ignored.  Loopback addresses are dropped: they
mean a resolver of the node, which a pod cannot reach, or this server itself.  A file that is
missing or cannot be read has no name servers.
"""

import logging
import os
from ipaddress import IPv6Address, ip_address
from typing import Final

from kubedns.shared.files import Stamp, stamp
from kubedns.shared.servers import ServerAddress

DEFAULT_PATH: Final = "/etc/resolv.conf"
MOST_NAMESERVERS: Final = 3
"""MAXNS of glibc's <resolv.h>."""

_LARGEST_FILE = 64 * 1024
_log = logging.getLogger(__name__)


class ResolvConf:
    """A resolv.conf that may be rewritten or replaced while the program runs."""

    def __init__(self, path: str | os.PathLike[str] = DEFAULT_PATH) -> None:
        self._path = os.fspath(path)
        self._stamp: Stamp | None = None

    def read(self) -> tuple[ServerAddress, ...]:
        """Return the name servers in the file's order, warning of each one left out."""
        self._stamp = stamp(self._path)
        try:
            with open(self._path, "rb") as file:
                content = file.read(_LARGEST_FILE)
        except OSError as error:
            _log.warning("no name servers from %s: %s", self._path, error.strerror or error)
            return ()
        servers = tuple(server for server in self._nameservers(content) if self._is_usable(server))
        if not servers:
            _log.warning("no name servers in %s", self._path)
        return servers

    def has_changed(self) -> bool:
        """Whether the file is another one than at the last reading; costs one stat(2)."""
        return stamp(self._path) != self._stamp

    def _nameservers(self, content: bytes) -> list[ServerAddress]:
        servers: list[ServerAddress] = []
        for line in content.decode("latin-1").split("\n"):
            keyword, *words = line.replace(";", " ;").replace("#", " #").split()[:2] or [""]
            if keyword != "nameserver" or not line.startswith(keyword):
                continue
            try:
                address = ip_address(words[0] if words else "")
            except ValueError:
                _log.warning("%s: %r names no IP address and is left out", self._path, line[:80])
                continue
            servers.append(ServerAddress(str(address)))
        return servers[:MOST_NAMESERVERS]

    def _is_usable(self, server: ServerAddress) -> bool:
        address = ip_address(server.host)
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        if address.is_loopback or address.is_unspecified:
            _log.warning(
                "%s: name server %s is left out, it is this host itself; behind a local resolver such as "
                "systemd-resolved give kubelet the file with the real ones (--resolv-conf)",
                self._path,
                server.host,
            )
            return False
        return True
