"""The nanny's metrics port: a page for GET, no content for HEAD."""

import asyncio

import pytest

from kubedns.shared.web import serve
from nanny.metrics import Metrics


@pytest.mark.parametrize(("method", "has_content"), [("GET", True), ("HEAD", False)])
async def test_page_comes_with_get_and_not_with_head(method, has_content):
    runner, port = await serve(Metrics().application(lambda: "{}"), 0, "the test")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{method} /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    head, _, content = (await reader.read()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert (b"dnsmasq_nanny_restarts_total" in content) is has_content
    assert bool(content) is has_content
    writer.close()
    await writer.wait_closed()
    await runner.cleanup()
