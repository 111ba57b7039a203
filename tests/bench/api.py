"""The local API with a large cluster: `python -m tests.bench.api PORT MANIFEST`.

SIGUSR1 makes all clients list again, in the way that they have to on a real server: so much changes at
once that the history which is kept has passed them by, and their watches end with 410.
"""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Final

from kubedns.local.api.server import LocalApi

_HISTORY: Final = 500


async def serve(port: int, manifest: Path) -> None:
    """Serve until killed."""
    api = LocalApi(port=port, history=_HISTORY)
    count = api.load([manifest])
    churn = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "churn", "namespace": "default"}}

    def expire() -> None:
        # Kept are twice as many before the oldest are forgotten.
        api.apply_all([churn] * (2 * _HISTORY + 1))

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, expire)
    async with api:
        print(f"serving {count} objects", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), Path(sys.argv[2])))
