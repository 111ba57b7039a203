"""The page: every state is shown, every text from outside is escaped, nothing is loaded from elsewhere."""

import re
from html.parser import HTMLParser

import pytest

from healthz.counters import CacheStatistics
from healthz.dnsmasqstats import DnsmasqStatistics
from healthz.page import Page
from healthz.results import HISTORY, Check, Outcome
from healthz.sparkline import sparkline
from kubedns.shared.histogram import Histogram
from kubedns.shared.servers import ServerAddress

HOSTILE = "<script>alert(1)</script>\"'&$title ${body}\x00\u202e"


def check(title: str = "kubedns", detail: str = "asks", path: str = "/healthcheck/kubedns") -> Check:
    return Check(path, title, detail, stale_after=30, latency=Histogram((1.0,)))


def page(*checks: Check, **extra) -> str:
    settings = {"dnsmasq": None, "readiness": None, "metrics_path": "/metrics"} | extra
    return Page("pod-1", checks, clock=lambda: 100.0, **settings).render("NONCE")


class Balance(HTMLParser):
    """Follows opening and closing tags; `scripts` counts script elements."""

    VOID = ("meta", "link", "rect")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.scripts = 0
        self.handlers: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def balanced(html: str) -> Balance:
    parser = Balance()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser


@pytest.mark.parametrize(
    ("outcome", "state", "overall"),
    [
        (None, "waiting", "Waiting for the first results"),
        (Outcome(99.0, 0.0123), "healthy", "All is well"),
        (Outcome(99.0, None, "connection refused"), "failed", "1 of 1 checks fails: kubedns"),
        (Outcome(10.0, 0.1), "stale", "1 of 1 checks fails: kubedns"),
    ],
    ids=["waiting", "healthy", "failed", "stale"],
)
def test_each_state_is_shown_by_word(outcome, state, overall):
    subject = check()
    if outcome:
        subject.record(outcome)
    html = page(subject)
    assert f'<span class="pill">{state}</span>' in html
    assert overall in html
    balanced(html)


def test_card_shows_reason_output_latency_and_since_when():
    subject = check()
    subject.record(Outcome(40.0, 0.1))
    subject.record(Outcome(89.0, 0.0123, "exit status 3", b"no route"))
    html = page(subject)
    assert "exit status 3" in html
    assert "<pre>no route</pre>" in html
    assert "12.3 ms" in html
    assert re.search(r"failing since</dt><dd>\w+ \d\d \d\d:\d\d:\d\d UTC \(11s\)", html)
    assert "Last 2 runs: 1 failed." in html


def test_every_text_from_outside_is_escaped():
    subject = check(HOSTILE, HOSTILE, "/" + HOSTILE)
    subject.record(Outcome(99.0, 0.1, HOSTILE, HOSTILE.encode() + b"\xff"))
    dnsmasq = DnsmasqStatistics(ServerAddress("127.0.0.1"), 1)
    dnsmasq.failure = HOSTILE
    readiness = check(HOSTILE, HOSTILE, HOSTILE)
    readiness.record(Outcome(99.0, 0.1, HOSTILE, HOSTILE.encode()))
    html = page(subject, dnsmasq=dnsmasq, readiness=readiness, metrics_path="/" + HOSTILE)
    assert "alert(1)</script>" not in html
    parsed = balanced(html)
    assert parsed.scripts == 1
    assert parsed.handlers == []


def test_nothing_is_loaded_from_elsewhere():
    html = page(check())
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", html)
    assert "url(" not in html
    assert "@import" not in html


def test_page_renews_itself_with_and_without_a_script_and_fits_a_phone():
    html = page(check())
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in html
    assert "setInterval(renew, 5000)" in html
    assert 'name="viewport"' in html
    assert "$" not in html


def test_dnsmasq_card_shows_the_hit_ratio():
    dnsmasq = DnsmasqStatistics(ServerAddress("127.0.0.1"), 1)
    dnsmasq.cache.update(CacheStatistics(1000, 0, 0, 750, 250))
    html = page(check(), dnsmasq=dnsmasq)
    assert "75.0% in all" in html
    assert "1,000 entries" in html


def test_long_output_is_cut_short():
    subject = check()
    subject.record(Outcome(99.0, 0.1, None, b"y" * 100_000))
    assert len(page(subject)) < 20_000


def test_sparkline_has_a_bar_for_each_run_and_full_height_for_failures():
    svg = sparkline([(0.001, True), (None, False), (20.0, True)])
    assert svg.count('class="ok"') == 2
    assert re.search(r'class="failed" x="\d+" y="0" width="3" height="30"', svg)
    assert 'aria-label="3 runs, 1 failed"' in svg


def test_sparkline_of_a_full_history_stays_inside_its_box():
    svg = sparkline([(value, True) for value in [0.0, 1e-9, 1e9, 0.01] * (HISTORY // 4)])
    for x, y, height in re.findall(r'class="ok" x="(-?\d+)" y="(-?\d+)" width="3" height="(\d+)"', svg):
        assert 0 <= int(x) <= 4 * HISTORY - 3
        assert int(y) >= 0
        assert 0 < int(height) <= 30
