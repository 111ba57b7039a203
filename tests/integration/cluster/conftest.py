import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from kubedns.cluster.credentials import ServiceAccountCredentials


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def server_tls(authority: trustme.CA) -> Callable[[], ssl.SSLContext]:
    """Make server contexts, each with a new certificate for 127.0.0.1 of the same authority."""

    def make() -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        return context

    return make


class Account:
    """A service account's directory, as kubelet mounts it: links into `..data`, swapped at once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._turn = 0

    def write(self, token: str, ca: bytes) -> None:
        self._turn += 1
        version = self.directory / f"..{self._turn}"
        version.mkdir()
        (version / "token").write_text(token)
        (version / "ca.crt").write_bytes(ca)
        fresh = self.directory / "..data_tmp"
        fresh.symlink_to(version.name)
        fresh.rename(self.directory / "..data")
        for name in ("token", "ca.crt"):
            if not (self.directory / name).is_symlink():
                (self.directory / name).symlink_to(f"..data/{name}")

    def credentials(self, port: int) -> ServiceAccountCredentials:
        return ServiceAccountCredentials("127.0.0.1", str(port), self.directory)


@pytest.fixture
def account(tmp_path: Path, authority: trustme.CA) -> Account:
    directory = tmp_path / "serviceaccount"
    directory.mkdir()
    made = Account(directory)
    made.write("first-token\n", authority.cert_pem.bytes())
    return made
