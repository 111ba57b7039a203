"""What can go wrong between here and the API server, each fault as one clear line.

In: the exceptions of aiohttp, HTTP statuses, Status objects.
Out: ApiError, whose text says what failed and, where it can be known, the remedy.
Source: the Status kind of the Kubernetes API; a 410 comes as an HTTP status or as an ERROR event
inside a 200 stream, with reason Expired or Gone.
"""

import errno
import socket
import ssl
from enum import StrEnum
from typing import Any

import aiohttp

from kubedns.cluster.resources import Request

_LONGEST_MESSAGE = 400
_LONGEST_RETRY_AFTER = 300.0


class Fault(StrEnum):
    """The kinds of fault, in the words the metrics use."""

    NAME = "name"
    CONNECT = "connect"
    TIMEOUT = "timeout"
    TLS = "tls"
    CUT = "cut"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    EXPIRED = "expired"
    INVALID = "invalid"
    THROTTLED = "throttled"
    SERVER = "server"
    PROTOCOL = "protocol"
    CREDENTIALS = "credentials"


class ApiError(Exception):
    """A request failed; `str()` is the line to log.

    `retry_after` is the server's wish in seconds, None where it has none; `code` is the HTTP
    status or that of an ERROR event, None where no answer came.
    """

    def __init__(
        self, fault: Fault, message: str, retry_after: float | None = None, code: int | None = None
    ) -> None:
        super().__init__(message)
        self.fault = fault
        self.code = code
        self.retry_after = retry_after


def from_status(
    request: Request, code: int, status: Any, header: str | None = None, location: str | None = None
) -> ApiError:
    """Return the error for an HTTP status or the code of an ERROR event.

    `status` is the decoded body, a Status object or anything else; `header` is Retry-After, `location`
    where a redirect leads, which is not followed.
    """
    body = status if isinstance(status, dict) else {}
    message = one_line(body.get("message"))
    reason = body.get("reason")
    if code == 410 or reason in ("Expired", "Gone"):
        fault = Fault.EXPIRED
    else:
        fault = _FAULTS.get(code, Fault.SERVER if code >= 500 else Fault.PROTOCOL)
    details = body.get("details")
    wish = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    remedy = _remedy(fault, request)
    text = f"cannot {request}: the API server answers {code}"
    if target := one_line(location):
        text = f"{text}, a redirect to {target}, which is not followed"
    line = f"{text}{f': {message}' if message else ''}{remedy}"
    return ApiError(fault, line, _retry_after(header or wish), code)


_FAULTS = {
    400: Fault.INVALID,
    401: Fault.UNAUTHORIZED,
    403: Fault.FORBIDDEN,
    404: Fault.NOT_FOUND,
    410: Fault.EXPIRED,
    422: Fault.INVALID,
    429: Fault.THROTTLED,
}


def _remedy(fault: Fault, request: Request) -> str:
    resource = request.resource
    if fault is Fault.UNAUTHORIZED:
        return "; it does not accept the credential: check the service account token or the kubeconfig's user"
    if fault is Fault.FORBIDDEN:
        kind = "Role" if request.namespace else "ClusterRole"
        return (
            f"; give the account a {kind} that allows verb {request.verb!r} on resource {resource.plural!r}"
            f" in API group {resource.group!r}"
        )
    if fault is Fault.NOT_FOUND:
        return f"; it does not serve {resource.plural} at {request.path}"
    return ""


_NO_TLS = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"}
"""How OpenSSL, by its version, calls an answer that is no TLS."""


def from_exception(request: Request, server: str, error: Exception) -> ApiError:
    """Return the error for an exception of aiohttp or the socket below it."""
    text = f"cannot {request}: "
    system_error = getattr(error, "os_error", None)
    if isinstance(error, aiohttp.ClientConnectorDNSError) or isinstance(system_error, socket.gaierror):
        why = one_line(str(system_error or error))
        return ApiError(Fault.NAME, f"{text}the name of the API server {server} does not resolve ({why})")
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        cause = getattr(error, "certificate_error", None) or system_error or error
        if getattr(cause, "reason", None) in _NO_TLS:
            why = f"what answers at {server} does not speak TLS: is it plain http, or another port?"
        else:
            why = (
                f"TLS with the API server {server} failed: {one_line(str(cause))};"
                " check the address and the CA bundle"
            )
        return ApiError(Fault.TLS, text + why)
    if isinstance(error, TimeoutError):
        return ApiError(Fault.TIMEOUT, f"{text}the API server {server} does not answer in time")
    if isinstance(error, aiohttp.ClientConnectorError):
        refused = error.os_error.errno == errno.ECONNREFUSED
        why = "refuses the connection" if refused else f"cannot be reached ({one_line(str(error.os_error))})"
        return ApiError(Fault.CONNECT, f"{text}the API server {server} {why}")
    if isinstance(error, aiohttp.ClientConnectionError | aiohttp.ClientPayloadError | OSError):
        return ApiError(
            Fault.CUT, f"{text}the connection to the API server {server} was cut ({_name(error)})"
        )
    return ApiError(
        Fault.PROTOCOL, f"{text}the API server {server} does not speak HTTP as expected ({_name(error)})"
    )


def _name(error: Exception) -> str:
    return one_line(str(error)) or type(error).__name__


def one_line(text: Any) -> str:
    """Return text from outside, cut to a length and without line breaks; empty when it is no text."""
    return " ".join(text[:_LONGEST_MESSAGE].split()) if isinstance(text, str) else ""


def _retry_after(wish: Any) -> float | None:
    """Return a Retry-After in seconds, at most five minutes; None for a date, which the API never sends."""
    if isinstance(wish, str):
        wish = int(wish) if wish.isascii() and wish.isdigit() and len(wish) < 10 else None
    if isinstance(wish, int | float) and wish >= 0:
        return min(float(wish), _LONGEST_RETRY_AFTER)
    return None
