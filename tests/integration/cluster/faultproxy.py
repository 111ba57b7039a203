"""A TCP proxy that does to a connection what networks do: cut, reset, swallow, delay, split."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Callable


class FaultProxy:
    """Forwards to 127.0.0.1:`target`.

    `hole`: nothing passes either way and nothing is said, new connections are accepted and hang.
    `delay`: seconds before each piece from the server.  `piece`: octets at once from the server.
    `edit`: a function over each piece from the server.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self.delay = 0.0
        self.piece = 1 << 16
        self.edit: Callable[[bytes], bytes] = bytes
        self.connections = 0
        self._open = asyncio.Event()
        self._open.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    @property
    def hole(self) -> bool:
        return not self._open.is_set()

    @hole.setter
    def hole(self, value: bool) -> None:
        if value:
            self._open.clear()
        else:
            self._open.set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._open.set()
            self.reset()
            await self._server.wait_closed()

    def cut(self) -> None:
        """End all connections in an orderly way (FIN)."""
        for writer in list(self._writers):
            writer.close()

    def reset(self) -> None:
        """Reset all connections (RST)."""
        for writer in list(self._writers):
            with contextlib.suppress(OSError):
                handle = writer.get_extra_info("socket")
                handle.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            await self._open.wait()
            upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", self.target)
            self._writers.add(upstream)
            try:
                await asyncio.gather(
                    self._pump(reader, upstream, shaped=False),
                    self._pump(upstream_reader, writer, shaped=True),
                )
            finally:
                self._writers.discard(upstream)
                upstream.close()
        except OSError:
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, shaped: bool
    ) -> None:
        while data := await reader.read(1 << 16):
            await self._open.wait()
            if shaped:
                data = self.edit(data)
                await asyncio.sleep(self.delay)
            step = self.piece if shaped else len(data)
            for begin in range(0, len(data), max(step, 1)):
                writer.write(data[begin : begin + step])
                await writer.drain()
                if step == 1:
                    await asyncio.sleep(0)
        writer.close()


@contextlib.asynccontextmanager
async def fault_proxy(target: int) -> AsyncIterator[FaultProxy]:
    proxy = FaultProxy(target)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
