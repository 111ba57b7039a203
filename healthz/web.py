"""HTTP: paths -> answers from what is known already; a request never starts or waits for a run.

GET and HEAD only; every other path is 404.  Differs: the original ends at `GET /quit`.
"""

import secrets
from collections.abc import Callable, Mapping

from aiohttp import web

from healthz.results import Check
from healthz.schedule import Clock

Answer = Callable[[], web.Response]

_HEADERS = {"Server": "exechealthz", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def application(answers: Mapping[str, Answer]) -> web.Application:
    """Return an application with one answer per path, matched exactly, without the query string."""

    async def handle(request: web.Request) -> web.Response:
        answer = answers.get(request.path)
        response = answer() if answer else _text(404, "404 page not found\n")
        response.headers.update(_HEADERS)
        return response

    app = web.Application()
    app.router.add_get("/{path:.*}", handle)
    return app


def check_answer(check: Check, clock: Clock, *, show_output: bool = False) -> Answer:
    """Return the answer of a check's url: 200 with `ok` or the output, else 503 with the reason."""

    def answer() -> web.Response:
        verdict = check.verdict(clock())
        output = check.last.output.decode(errors="replace") if check.last else ""
        if verdict.healthy:
            return _text(200, output if show_output else "ok\n")
        return _text(503, f"{verdict.state}: {verdict.reason}\n{output}")

    return answer


def page_answer(render: Callable[[str], str]) -> Answer:
    """Return the answer that is the page; `render` takes the nonce of its script."""

    def answer() -> web.Response:
        word = secrets.token_urlsafe(12)
        policy = (
            f"default-src 'none'; script-src 'nonce-{word}'; style-src 'unsafe-inline'; img-src data:; "
            "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        return web.Response(
            text=render(word),
            content_type="text/html",
            charset="utf-8",
            headers={"Content-Security-Policy": policy},
        )

    return answer


def bytes_answer(produce: Callable[[], bytes], content_type: str) -> Answer:
    """Return an answer of octets with a whole Content-Type line."""
    return lambda: web.Response(body=produce(), headers={"Content-Type": content_type})


def _text(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text, content_type="text/plain", charset="utf-8")
