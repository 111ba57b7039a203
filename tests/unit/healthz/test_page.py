"""The page: every state is shown, every text from outside is escaped, nothing is loaded from elsewhere."""

import json
import re
from html.parser import HTMLParser

import pytest

from healthz.account import parse_account
from healthz.chart import levels, rates
from healthz.counters import CacheStatistics
from healthz.findings import Watched
from healthz.page import Page
from healthz.programs import Program
from healthz.results import HISTORY, Check, Outcome
from healthz.sparkline import sparkline
from healthz.traffic import POINTS, History, Point
from kubedns.shared.histogram import Histogram
from kubedns.shared.servers import ServerAddress

HOSTILE = "<script>alert(1)</script>\"'&$title ${body}\x00\u202e"


def check(title: str = "kubedns", detail: str = "asks", path: str = "/healthcheck/kubedns") -> Check:
    return Check(path, title, detail, stale_after=30, latency=Histogram((1.0,)))


def watched(*checks: Check, **extra) -> Watched:
    settings = {"readiness": None, "kubedns": None, "nanny": None, "dnsmasq": None, "history": History()}
    return Watched(checks=checks, **(settings | extra))


def page(*checks: Check, metrics_path: str = "/metrics", **extra) -> str:
    return Page("pod-1", watched(*checks, **extra), metrics_path, clock=lambda: 100.0).render("NONCE")


def program(name: str = "kubedns", **account) -> Program:
    """Return a program that says this of itself, or can't be read when nothing is given."""
    one = Program(name, f"http://127.0.0.1/{name}", lambda: 100.0)
    if account:
        one.account = parse_account(json.dumps(account).encode())
    else:
        one.failure = "no answer within 2 s"
    return one


class Balance(HTMLParser):
    """Follows opening and closing tags; `scripts` counts script elements."""

    VOID = ("meta", "link", "rect", "path")

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
        (Outcome(99.0, None, "connection refused"), "failed", "1 thing is wrong: check kubedns"),
        (Outcome(10.0, 0.1), "stale", "1 thing is wrong: check kubedns"),
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


def test_every_text_from_outside_is_escaped(statistics_of):
    subject = check(HOSTILE, HOSTILE, "/" + HOSTILE)
    subject.record(Outcome(99.0, 0.1, HOSTILE, HOSTILE.encode() + b"\xff"))
    dnsmasq = statistics_of(ServerAddress("127.0.0.1"))
    dnsmasq.failure = HOSTILE
    readiness = check(HOSTILE, HOSTILE, HOSTILE)
    readiness.record(Outcome(99.0, 0.1, HOSTILE, HOSTILE.encode()))
    hostile = program(
        version=HOSTILE,
        configuration={
            "source": HOSTILE,
            "in_force": {HOSTILE: {HOSTILE: [HOSTILE]}, "hosts": f"{HOSTILE}\n{HOSTILE}"},
            "refused": [{"key": HOSTILE, "reason": HOSTILE}],
        },
        upstreams=[
            {"server": HOSTILE, "domain": HOSTILE, "up": False, "failures": {HOSTILE: 3}, "reason": HOSTILE}
        ],
        watch={
            "synced": True,
            "objects": {HOSTILE: 1},
            "resources": [{"name": HOSTILE, "age": 1, "error": HOSTILE}],
        },
        dnsmasq={"started": 5, "restarts": {HOSTILE: 1}},
    )
    unreadable = program(HOSTILE)
    unreadable.failure = HOSTILE
    html = page(
        subject,
        dnsmasq=dnsmasq,
        readiness=readiness,
        kubedns=hostile,
        nanny=unreadable,
        metrics_path="/" + HOSTILE,
    )
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


def test_cache_card_shows_the_clients_hit_ratio(statistics_of):
    dnsmasq = statistics_of(ServerAddress("127.0.0.1"))
    dnsmasq.cache.update(CacheStatistics(1000, 0, 0, 750, 250))
    history = History()
    history.add(0.0, Point(dnsmasq_seconds=15.0, hits=3, misses=1))
    html = page(check(), dnsmasq=dnsmasq, history=history)
    assert '<div class="figure">75.0%</div>' in html
    assert "1,000 entries" in html


def test_cache_card_without_clients_shows_no_ratio(statistics_of):
    dnsmasq = statistics_of(ServerAddress("127.0.0.1"))
    dnsmasq.cache.update(CacheStatistics(1000, 0, 0, 750, 250))
    assert "no client has asked" in page(check(), dnsmasq=dnsmasq)


def test_program_that_cannot_be_read_is_shown_as_such_and_without_old_figures():
    html = page(kubedns=program("kubedns"))
    assert "1 thing is wrong: kubedns" in html
    assert html.count("no answer within 2 s") >= 2
    assert "MiB" in html.split("exechealthz</h3>")[1]
    assert "MiB" not in html.split("exechealthz</h3>")[0]


def test_configuration_shows_what_is_in_force_and_what_is_refused():
    html = page(
        kubedns=program(
            configuration={
                "source": "configuration directory /x",
                "in_force": {
                    "upstreamNameservers": ["192.0.2.1:53"],
                    "stubDomains": {"corp.test": ["a:53", "b:53"]},
                },
                "refused": [{"key": "hosts", "reason": "line 3: no address"}],
            },
            upstreams=[{"server": "192.0.2.1:53", "domain": ".", "up": True, "latency": 0.0123}],
        )
    )
    assert "upstreamNameservers: 192.0.2.1:53\nstubDomains:\n  corp.test: a:53, b:53" in html
    assert "hosts: line 3: no address" in html
    assert "12.3 ms" in html


def test_watch_shows_errors_once_and_every_age():
    refused = "cannot list services: connection refused"
    html = page(
        kubedns=program(
            upstreams=[{"server": "192.0.2.1:53", "domain": ".", "up": True}],
            watch={
                "synced": True,
                "objects": {"service": 1234},
                "records": 99,
                "resources": [
                    {"name": "services", "age": 125, "error": refused},
                    {"name": "slices", "age": None, "error": refused},
                ],
            },
        )
    )
    assert html.count(f'<p class="reason">{refused}</p>') == 1
    assert "1,234" in html
    assert "2m5s ago" in html
    assert "never" in html


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


def test_chart_of_rates_stays_inside_its_box_and_shows_failures():
    points = [Point(kubedns_seconds=1.0, questions=number, servfail=number // 2) for number in range(POINTS)]
    svg = rates(
        points,
        lambda point: point.kubedns_rate,
        lambda point: point.servfail / point.kubedns_seconds,
        "label",
    )
    tops = [float(top) for top in re.findall(r"V([\d.]+)h1", svg)]
    assert min(tops) >= 0
    assert max(tops) <= 40
    assert '<path class="failed" d="M' in svg
    assert max(int(place) for place in re.findall(r"M(\d+) ", svg)) == POINTS - 1


def test_strip_shows_when_something_was_wrong():
    good, bad = Point(kubedns_seconds=15.0), Point(kubedns_seconds=15.0, wrong=True)
    svg = levels([good, bad, bad, good, Point(dnsmasq_seconds=1.0, doubtful=True)])
    kinds = re.findall(r'class="(ok|failed|doubtful)" x="(\d+)" y="0" width="(\d+)"', svg)
    assert kinds == [
        ("ok", "235", "1"),
        ("failed", "236", "2"),
        ("ok", "238", "1"),
        ("doubtful", "239", "1"),
    ]
    assert "something was wrong for 45s" in svg
