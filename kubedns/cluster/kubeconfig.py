"""Credentials from a kubeconfig, read by the `kubernetes` library: tokens, certificates, exec, OIDC.

In: the path of a kubeconfig, perhaps a URL that overrides its server.
Out: an Access for each request.
Invariant: the file is loaded again when it changes and after a 401; the library itself refreshes
a credential whose expiry it knows.

The only module that imports `kubernetes`, and only imported when there is a kubeconfig.
"""

import asyncio
import logging
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

import yaml
from kubernetes.client import Configuration
from kubernetes.config import ConfigException, load_kube_config

from kubedns.cluster.access import Access
from kubedns.cluster.files import CredentialsError, TrustFiles
from kubedns.shared.files import Stamp, stamp

_log = logging.getLogger(__name__)

_UNUSABLE = (ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, AttributeError, LookupError)
"""What the library raises for a kubeconfig that is missing, no YAML, or of another shape."""


class KubeconfigCredentials:
    """The current context of a kubeconfig; `url`, when not empty, replaces its server."""

    def __init__(self, path: str, url: str = "") -> None:
        """Load the kubeconfig; raises CredentialsError."""
        self._path = Path(path).expanduser()
        self._url = url
        self._stale = False
        self._loaded: Stamp | None = None
        self._configuration: Any = None
        self._trust = TrustFiles()
        self._warned_plain = False
        self._load()

    @property
    def server(self) -> str:
        """The API server's base URL."""
        return self._url or str(self._configuration.host).rstrip("/")

    async def access(self) -> Access:
        """Return the access; an exec plugin or an OIDC refresh runs in a thread meanwhile."""
        return await asyncio.to_thread(self._access)

    def refused(self) -> None:
        """Load the kubeconfig anew, which runs an exec plugin again and reads token files again."""
        self._stale = True

    def _access(self) -> Access:
        now = stamp(self._path)
        if self._stale or now != self._loaded:
            try:
                self._load()
            except CredentialsError as error:
                self._loaded = now
                _log.warning("keeping the last kubeconfig: %s", error)
        try:
            settings = self._configuration.auth_settings()
        except _UNUSABLE as error:
            raise CredentialsError(f"kubeconfig {self._path}: the credential expired: {error}") from error
        # A token file ends in a newline as a rule, which no header can hold.
        authorization = settings["BearerToken"]["value"].strip() if "BearerToken" in settings else None
        if authorization and not self.server.startswith("https:"):
            self._warn_plain()
            authorization = None
        return Access(
            self.server,
            authorization,
            self._trust.context() if self.server.startswith("https:") else None,
            self._configuration.tls_server_name,
            self._proxy(),
        )

    def _warn_plain(self) -> None:
        if not self._warned_plain:
            self._warned_plain = True
            _log.warning(
                "kubeconfig %s: its token is not sent to %s, which has no TLS: anybody on the way could read it",
                self._path,
                self.server,
            )

    def _proxy(self) -> str | None:
        """Return the proxy of the kubeconfig or the environment, unless the server is excepted from it."""
        host = urlsplit(self.server).hostname or ""
        excepted = proxy_bypass(host, {"no": self._configuration.no_proxy or ""})
        return None if excepted else self._configuration.proxy

    def _load(self) -> None:
        now = stamp(self._path)
        configuration = Configuration()
        try:
            self._path.read_bytes()
            load_kube_config(  # type: ignore[no-untyped-call]
                str(self._path), client_configuration=configuration, persist_config=False
            )
            command = _exec_plugin(self._path)
        except _UNUSABLE as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise CredentialsError(f"kubeconfig {self._path} cannot be used: {reason}") from error
        files = [configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file]
        ca, certificate, key = (Path(name) if name else None for name in files)
        if not configuration.auth_settings() and certificate is None:
            if command:
                where = "" if shutil.which(command) else ", which is not on this host"
                raise CredentialsError(
                    f"kubeconfig {self._path}: no credential from the exec plugin {command}{where}; "
                    "run it by hand to see why"
                )
            _log.warning("kubeconfig %s gives no credential: requests go out anonymous", self._path)
        self._configuration, self._loaded, self._stale = configuration, now, False
        self._trust = TrustFiles(ca, certificate, key, verify=bool(configuration.verify_ssl))


def _exec_plugin(path: Path) -> str:
    """Return the command that gives the current user's credential, empty where none is to be run."""
    content = yaml.safe_load(path.read_text())
    contexts = {entry["name"]: entry["context"] for entry in content.get("contexts") or ()}
    user = contexts.get(content.get("current-context"), {}).get("user")
    users = {entry["name"]: entry.get("user") or {} for entry in content.get("users") or ()}
    return str((users.get(user, {}).get("exec") or {}).get("command", ""))
