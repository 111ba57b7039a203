"""What a request to the API server needs, and who gives it.

The hand-over between the kinds of credentials and the session that sends requests.
"""

import ssl
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Access:
    """What one request needs: base URL without final slash, header value, TLS, proxy.

    `tls` is None for plain HTTP; `server_name` is what the certificate must be for, None the
    URL's host; `authorization` and `proxy` are None where there is none.
    """

    server: str
    authorization: str | None = None
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None


class Credentials(Protocol):
    """The source of Access."""

    @property
    def server(self) -> str:
        """The API server's base URL, for messages."""

    async def access(self) -> Access:
        """Return the access as the files are now; raises CredentialsError."""

    def refused(self) -> None:
        """Take note of a 401: the next access is made from files read anew."""
