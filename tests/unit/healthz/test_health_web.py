"""HTTP answers: status, body, headers, methods, and what does not exist."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from healthz.results import Check, Outcome
from healthz.web import Answer, application, bytes_answer, check_answer, page_answer
from kubedns.shared.histogram import Histogram
from kubedns.shared.web import serve


class Site:
    """A served check whose clock stands at 100 until a test moves it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.check = Check("/healthz", "t", "d", stale_after=30, latency=Histogram((1.0,)))
        self.url = ""

    def answers(self) -> dict[str, Answer]:
        return {
            "/healthz": check_answer(self.check, lambda: self.now),
            "/output": check_answer(self.check, lambda: self.now, show_output=True),
            '/{odd}/<"p">': check_answer(self.check, lambda: self.now),
            "/metrics": bytes_answer(lambda: b"x 1\n", "text/plain; version=0.0.4"),
            "/": page_answer(lambda nonce: f"<script nonce={nonce}>"),
        }


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    runner, port = await serve(application(site.answers()), 0, "the test")
    site.url = f"http://127.0.0.1:{port}"
    yield site
    await runner.cleanup()


async def fetch(url: str, method: str = "GET") -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.request(method, url) as response:
        return response.status, await response.text()


async def raw_head(url: str, path: str) -> bytes:
    """Return all that comes after a HEAD, which aiohttp's client would not read."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"HEAD {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_url_is_503_before_the_first_result(site):
    status, body = await fetch(f"{site.url}/healthz")
    assert status == 503
    assert "no result yet" in body


async def test_url_is_200_ok_after_a_good_result(site):
    site.check.record(Outcome(99.0, 0.1, output=b"what it said"))
    assert await fetch(f"{site.url}/healthz") == (200, "ok\n")
    assert await fetch(f"{site.url}/output") == (200, "what it said")


async def test_url_is_503_with_reason_and_output_after_a_bad_result(site):
    site.check.record(Outcome(99.0, 0.1, "exit status 1", b"%s%n \xff \xe2\x82\xac"))
    assert await fetch(f"{site.url}/healthz") == (503, "failed: exit status 1\n%s%n \ufffd \u20ac")


async def test_url_is_503_when_the_good_result_is_stale(site):
    site.check.record(Outcome(99.0, 0.1))
    site.now = 129.1
    status, body = await fetch(f"{site.url}/healthz")
    assert status == 503
    assert body.startswith("stale: the last result, good, is 30.1 s old")


async def test_head_has_the_status_without_a_body(site):
    assert await fetch(f"{site.url}/healthz", "HEAD") == (503, "")
    site.check.record(Outcome(99.0, 0.1))
    assert await fetch(f"{site.url}/healthz", "HEAD") == (200, "")
    for path in ("/healthz", "/output", "/quit"):
        assert (await raw_head(site.url, path)).endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    "path", ["/quit", "/healthz/", "/healthz/x", "/HEALTHZ", "//", "/healthcheck/", "/../healthz%00"]
)
async def test_unknown_path_is_404(site, path):
    site.check.record(Outcome(99.0, 0.1))
    status, _ = await fetch(f"{site.url}{path}")
    assert status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
async def test_other_methods_are_not_allowed(site, method):
    status, _ = await fetch(f"{site.url}/healthz", method)
    assert status == 405


async def test_path_with_special_characters_is_matched_as_it_was_given(site):
    site.check.record(Outcome(99.0, 0.1))
    status, _ = await fetch(f"{site.url}/%7Bodd%7D/%3C%22p%22%3E")
    assert status == 200


async def test_query_string_does_not_matter(site):
    site.check.record(Outcome(99.0, 0.1))
    assert (await fetch(f"{site.url}/healthz?x=1"))[0] == 200


async def test_answers_are_neither_cached_nor_guessed_at(site):
    async with aiohttp.ClientSession() as session, session.get(f"{site.url}/healthz") as response:
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert "aiohttp" not in response.headers["Server"]


async def test_page_allows_its_own_script_alone(site):
    async with aiohttp.ClientSession() as session:
        policies = set()
        for _ in range(2):
            async with session.get(f"{site.url}/") as response:
                body = await response.text()
                policy = response.headers["Content-Security-Policy"]
            nonce = body.partition("nonce=")[2].removesuffix(">")
            assert f"script-src 'nonce-{nonce}'" in policy
            assert "default-src 'none'" in policy
            policies.add(policy)
    assert len(policies) == 2


async def test_metrics_keep_their_content_type(site):
    async with aiohttp.ClientSession() as session, session.get(f"{site.url}/metrics") as response:
        assert response.headers["Content-Type"] == "text/plain; version=0.0.4"
        assert await response.text() == "x 1\n"
