"""The local API with a large cluster: `python -m tests.bench.api PORT CONTROL MANIFEST`.

What happens to the cluster is asked for at the control port, a line each; its answer is a line too, when it
is over.  Changes are made in this process, as a client's requests would take more of the core that the
load shares than the changes themselves.

`change RATE SECONDS [unseen]` makes changes and answers with their number; `expire` makes all clients list
again, in the way that they have to on a real server: so much changes at once that the history which is
kept has passed them by, and their watches end with 410.
"""

import asyncio
import socket
import sys
from pathlib import Path
from typing import Final

from kubedns.local.api.server import LocalApi
from tests.bench.changes import change_for
from tests.bench.cluster import Cluster
from tests.bench.machine import BenchError

_HISTORY: Final = 500


async def serve(port: int, control: int, manifest: Path) -> None:
    """Serve until killed."""
    api = LocalApi(port=port, history=_HISTORY)
    count = api.load([manifest])

    async def obey(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        words = (await reader.readline()).decode().split()
        writer.write(f"{await _do(api, words)}\n".encode())
        writer.close()

    async with api, await asyncio.start_server(obey, "127.0.0.1", control):
        print(f"serving {count} objects", flush=True)
        await asyncio.Event().wait()


async def _do(api: LocalApi, words: list[str]) -> int:
    """Carry out a command; return how many changes it made."""
    if words == ["expire"]:
        churn = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "churn", "namespace": "default"},
        }
        api.apply_all([churn] * (2 * _HISTORY + 1))  # twice as many are kept before the oldest are forgotten
        return 2 * _HISTORY + 1
    _, rate, seconds, *unseen = words
    return await change_for(api, Cluster(), int(rate), float(seconds), unseen=bool(unseen))


def ask(control: int, command: str) -> socket.socket:
    """Send a command to a control port; return the connection, on which the answer comes.  Raises BenchError."""
    try:
        connection = socket.create_connection(("127.0.0.1", control), 60)
        connection.sendall(f"{command}\n".encode())
    except OSError as error:
        raise BenchError(f"the API server does not take {command!r}: {error}") from error
    return connection


def answer(connection: socket.socket) -> int:
    """Wait for the answer and return it; raises BenchError when there is none."""
    with connection.makefile() as lines:
        line = lines.readline()
    if not line:
        raise BenchError("the API server gave up a command")
    return int(line)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
