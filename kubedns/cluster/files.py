"""Credential files that are replaced while they are in use, as kubelet does by swapping a link.

In: paths of a token, a CA bundle, a client certificate and its key.
Out: the token's text; a TLS context.
Invariant: each call looks whether the files behind the paths changed; what cannot be read now
keeps its last good content, with one log line.
"""

import logging
import ssl
from pathlib import Path

from kubedns.shared.files import Stamp, stamp

_log = logging.getLogger(__name__)


class CredentialsError(Exception):
    """There is no usable credential; the text names the file and the reason."""


class TokenFile:
    """A bearer token in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: Stamp | None = None
        self._token = ""
        self._complained = False

    def read(self) -> str:
        """Return the token without surrounding white space; raises CredentialsError if there never was one."""
        now = stamp(self._path)
        if now == self._stamp and self._token:
            return self._token
        try:
            token = self._path.read_text(encoding="ascii").strip()
            reason = "" if token.isprintable() and token else "it holds no token"
        except (OSError, UnicodeDecodeError) as error:
            token, reason = "", getattr(error, "strerror", None) or str(error)
        if not reason:
            self._stamp, self._token, self._complained = now, token, False
        elif not self._token:
            raise CredentialsError(f"token file {self._path} cannot be used: {reason}")
        elif not self._complained:
            self._complained = True
            _log.warning("token file %s cannot be used, keeping the last token: %s", self._path, reason)
        return self._token

    def forget(self) -> None:
        """Read the file at the next call whatever its signature."""
        self._stamp = None


class TrustFiles:
    """A CA bundle (None: what the machine trusts) and perhaps a client certificate with its key."""

    def __init__(
        self,
        ca: Path | None = None,
        certificate: Path | None = None,
        key: Path | None = None,
        *,
        verify: bool = True,
    ) -> None:
        self._paths = (ca, certificate, key)
        self._verify = verify
        self._stamps: tuple[Stamp | None, ...] | None = None
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """Return a context made from the files as they are; the same one while they are unchanged.

        Raises CredentialsError if they never were usable.
        """
        now = tuple(None if path is None else stamp(path) for path in self._paths)
        if self._context is not None and now == self._stamps:
            return self._context
        try:
            context = self._make()
        except (OSError, ValueError) as error:
            names = ", ".join(str(path) for path in self._paths if path is not None)
            reason = getattr(error, "strerror", None) or str(error)
            if self._context is None:
                raise CredentialsError(f"TLS files {names} cannot be used: {reason}") from error
            if now != self._stamps:
                _log.warning("TLS files %s cannot be used, keeping the last ones: %s", names, reason)
            context = self._context
        self._context, self._stamps = context, now
        return context

    def _make(self) -> ssl.SSLContext:
        ca, certificate, key = self._paths
        context = ssl.create_default_context(cafile=ca)
        # Cluster CAs often lack the extensions that Python 3.13 began to insist on; Go does not.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not self._verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate is not None:
            context.load_cert_chain(certificate, key)
        return context
