"""Where the API server is, whom it must be, and what lets us in.

In: the flags' kubeconfig and URL; in a cluster the service account's files and two variables.
Out: an Access for each request, made from the files as they are now.
Invariant: a token or CA file that was replaced is used from the next request on; a file that
cannot be read for a moment leaves the last good content in use.

In a cluster the three files are read here rather than by the `kubernetes` library: importing
that costs 19 MiB of resident memory, a fifth of the whole budget, it re-reads a token only each
minute, and it sends the file's final newline along.  Kubeconfigs are the library's: `kubeconfig`.
"""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from kubedns.cluster.access import Access, Credentials
from kubedns.cluster.files import CredentialsError, TokenFile, TrustFiles

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class UrlCredentials:
    """A bare URL: no credential, and for https the certificates the machine trusts."""

    def __init__(self, url: str) -> None:
        self.server = checked_url(url)
        self._trust = TrustFiles()

    async def access(self) -> Access:
        """Return the access."""
        secure = self.server.startswith("https:")
        return Access(self.server, tls=await asyncio.to_thread(self._trust.context) if secure else None)

    def refused(self) -> None:
        """Do nothing: there is no file to read."""


class ServiceAccountCredentials:
    """The pod's service account, as kubelet mounts it: `token` and `ca.crt` in one directory."""

    def __init__(self, host: str, port: str, directory: Path = SERVICE_ACCOUNT) -> None:
        self.server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        self._token = TokenFile(directory / "token")
        self._trust = TrustFiles(directory / "ca.crt")

    async def access(self) -> Access:
        """Return the access; raises CredentialsError while token or CA were never readable."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> Access:
        return Access(self.server, f"Bearer {self._token.read()}", self._trust.context())

    def refused(self) -> None:
        """Read the token again even if the file looks unchanged."""
        self._token.forget()


def load_credentials(
    kubeconfig: str, url: str, environ: Mapping[str, str], directory: Path = SERVICE_ACCOUNT
) -> Credentials:
    """Return the credentials that the flags ask for.

    As in the original: a kubeconfig, whose server the URL overrides; the URL alone; neither: the
    service account in `directory`.  Raises CredentialsError with the remedy.
    """
    if kubeconfig:
        from kubedns.cluster.kubeconfig import KubeconfigCredentials

        return KubeconfigCredentials(kubeconfig, checked_url(url) if url else "")
    if url:
        return UrlCredentials(url)
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise CredentialsError(
            "no API server to talk to: this is not a pod (KUBERNETES_SERVICE_HOST and _PORT are not set);"
            " give --kubecfg-file or --kube-master-url"
        )
    account = ServiceAccountCredentials(host, port, directory)
    try:
        account._read()
    except CredentialsError as error:
        raise CredentialsError(
            f"{error}; is the pod's service account mounted (automountServiceAccountToken)?"
        ) from error
    return account


def checked_url(text: str) -> str:
    """Return a base URL without its final slash; without a scheme it is http, as for client-go.

    Raises CredentialsError.
    """
    url = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise CredentialsError(f"API server URL {text!r}: {error}") from error
    if not usable or parts.query or parts.fragment:
        raise CredentialsError(f"API server URL {text!r} is not like https://host:port")
    logging.getLogger(__name__).debug("API server: %s", url)
    return url.rstrip("/")
