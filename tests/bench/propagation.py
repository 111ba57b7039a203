"""How soon a Service that was created is answered: from the API's 201 to the first answer.

Runs as a process of its own: `python -m tests.bench.propagation URL PORT COUNT`.  Prints, as JSON, the
milliseconds of each Service, and how many answers were still the old one after a new one was seen.
"""

import http.client
import json
import socket
import sys
import time
import urllib.parse
from dataclasses import dataclass
from typing import Final

_WITHIN: Final = 5.0
_AT_MOST: Final = 30.0
_PAUSE: Final = 0.02
_AFTERWARDS: Final = 20
_PATH: Final = "/api/v1/namespaces/ns-0/services"


@dataclass(frozen=True, slots=True)
class Propagation:
    """Milliseconds from 201 to the answer, sorted; stale answers; Services never answered."""

    milliseconds: list[float]
    stale: int
    lost: int


class Asker:
    """Asks one server for addresses."""

    def __init__(self, port: int) -> None:
        self._client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._client.connect(("127.0.0.1", port))
        self._client.settimeout(1.0)
        self._number = 0

    def exists(self, service: str) -> bool:
        """Whether the name of a Service in ns-0 has an address; raises TimeoutError."""
        self._number = (self._number + 1) & 0xFFFF
        wanted = self._number.to_bytes(2)
        name = bytes((len(service),)) + service.encode() + b"\4ns-0\3svc\7cluster\5local\0"
        self._client.send(wanted + b"\1\0\0\1\0\0\0\0\0\0" + name + b"\0\1\0\1")
        while (reply := self._client.recv(512))[:2] != wanted:
            pass
        return reply[3] & 0xF == 0 and reply[7] > 0


def measure(url: str, port: int, count: int) -> Propagation:
    """Create Services, one after the other, wait for each, delete it; stop after half a minute."""
    where = urllib.parse.urlsplit(url)
    api = http.client.HTTPConnection(where.hostname or "", where.port, timeout=10)
    asker, times, stale, lost = Asker(port), [], 0, 0
    end = time.perf_counter() + _AT_MOST
    for number in range(count):
        if time.perf_counter() > end:
            break
        name = f"new-{number}"
        spec = {"ports": [{"name": "http", "port": 80}]}
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
        _request(api, "POST", _PATH, body)
        created = time.perf_counter()
        while not asker.exists(name) and time.perf_counter() - created < _WITHIN:
            pass
        took = time.perf_counter() - created
        if took >= _WITHIN:
            lost += 1
        else:
            times.append(took * 1000)
            stale += sum(not asker.exists(name) for _ in range(_AFTERWARDS))
        _request(api, "DELETE", f"{_PATH}/{name}")
        time.sleep(_PAUSE)
    return Propagation(sorted(times), stale, lost)


def _request(api: http.client.HTTPConnection, method: str, path: str, body: object = None) -> None:
    api.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
    response = api.getresponse()
    response.read()
    if response.status >= 300:
        raise OSError(f"{method} {path}: {response.status} {response.reason}")


def main() -> int:
    """Measure as the command line says; return the exit status."""
    found = measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps([found.milliseconds, found.stale, found.lost]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
