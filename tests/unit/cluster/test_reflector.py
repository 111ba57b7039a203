import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from kubedns.cluster import project
from kubedns.cluster.delivery import DirectDelivery
from kubedns.cluster.errors import ApiError, Fault
from kubedns.cluster.listing import MOST_PAGES
from kubedns.cluster.reflector import Reflector
from kubedns.cluster.resources import SERVICES, Request, Selection
from kubedns.dns.names import pack_address
from kubedns.objects import Service
from kubedns.shared.tasks import cancel, spawn
from kubedns.telemetry.watches import ResourceStatistics
from tests.unit.cluster.scriptedapi import (
    RecordingSink,
    ScriptedApi,
    bookmark,
    chunks,
    hang,
    line,
    refuse,
    service,
    status,
    until,
)
from tests.unit.cluster.virtualtime import run_virtual


class Running:
    """A reflector on a scripted API."""

    def __init__(self, relist_period: float = 1e9, sink: RecordingSink[Service] | None = None) -> None:
        self.api = ScriptedApi()
        self.sink: RecordingSink[Service] = sink or RecordingSink()
        self.statistics = ResourceStatistics("services")
        self.reflector = Reflector[Service](
            self.api,
            Selection("services", SERVICES),
            project.service,
            DirectDelivery[Service](self.sink, self.statistics),
            self.statistics,
            relist_period,
        )

    @property
    def names(self) -> set[str]:
        return {name for _, name in self.sink.state}

    def knows(self, name: str) -> bool:
        return name in self.names

    def relisted(self, times: int) -> bool:
        return self.statistics.lists["ok"] >= times

    def age(self) -> float:
        assert self.statistics.last_activity is not None
        return asyncio.get_running_loop().time() - self.statistics.last_activity


@contextlib.asynccontextmanager
async def running(
    relist_period: float = 1e9, *, synced: bool = True, **objects: str
) -> AsyncIterator[Running]:
    case = Running(relist_period)
    for name, address in objects.items():
        case.api.put(name, address)
    task = spawn(case.reflector.run(), name="under test")
    try:
        if synced:
            await until(lambda: case.reflector.live_since is not None)
        yield case
    finally:
        await cancel(task)


def test_list_then_watch_from_its_version():
    async def scenario() -> None:
        async with running(web="10.0.0.1") as case:
            assert case.sink.state == {("shop", "web"): Service("shop", "web", (pack_address("10.0.0.1"),))}
            assert [kind for _, kind, _ in case.api.requests] == ["stream", "watch"]
            assert case.api.asked("watch")[0].params["resourceVersion"] == "101"
            case.api.put("new")
            await until(lambda: "new" in case.names)
            case.api.put("web", "10.0.0.9")
            await until(lambda: case.sink.state["shop", "web"].cluster_ips == (pack_address("10.0.0.9"),))
            case.api.delete("web")
            await until(lambda: case.names == {"new"})
            assert sum(case.statistics.propagation.counts) == 3

    run_virtual(scenario)


def test_object_whose_projection_is_unchanged_is_not_applied_again():
    async def scenario() -> None:
        async with running(web="10.0.0.1") as case:
            case.api.put("web", "10.0.0.1")
            case.api.put("other")
            await until(lambda: "other" in case.names)
            assert [set(batch) for batch in case.sink.batches] == [{("shop", "web")}, {("shop", "other")}]

    run_virtual(scenario)


@pytest.mark.parametrize("code", [400, 422, 500])
def test_server_that_refuses_to_stream_lists_is_asked_for_pages(code, caplog):
    async def scenario() -> None:
        async with running(synced=False) as case:
            case.api.always["stream"] = refuse(code, message="sendInitialEvents is forbidden")
            case.api.put("web")
            await until(case.reflector.synced.is_set)
            assert case.names == {"web"}
            assert case.api.asked("list")[0].params == {"limit": "500"}

    caplog.set_level(logging.INFO)
    run_virtual(scenario)
    assert sum("in pages" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize(
    "event", [bookmark(99), line("MODIFIED", service("old", 4)), line("DELETED", service("old", 4))]
)
def test_server_that_goes_on_watching_instead_of_ending_its_list_is_asked_for_pages_at_once(event):
    async def endless() -> AsyncIterator[bytes]:
        yield line("ADDED", service("old", 3)) + event
        await asyncio.Event().wait()

    async def scenario() -> None:
        async with running(synced=False) as case:
            case.api.always["stream"] = lambda request: endless()
            case.api.put("web")
            begun = asyncio.get_running_loop().time()
            await until(case.reflector.synced.is_set)
            assert asyncio.get_running_loop().time() - begun < 5
            assert case.names == {"web"}

    run_virtual(scenario)


@pytest.mark.parametrize(
    "answer",
    [
        (line("ERROR", status(500, message="RequestWatchProgress is disabled")),),
        (line("ADDED", service("old", 3)), line("ERROR", {"kind": "Status"})),
        (line("ADDED", service("old", 3)), bookmark(99)),
        (line("ADDED", service("old", 3)),),
    ],
)
def test_streaming_list_that_does_not_end_in_its_bookmark_gives_way_to_pages(answer):
    async def scenario() -> None:
        async with running(synced=False) as case:
            case.api.script["stream"].append(lambda request: chunks(*answer))
            case.api.put("web")
            await until(case.reflector.synced.is_set)
            assert case.names == {"web"}

    run_virtual(scenario)


def test_list_stream_that_falls_silent_gives_way_to_pages():
    async def scenario() -> None:
        async with running(synced=False) as case:
            case.api.script["stream"].append(lambda request: hang())
            case.api.put("web")
            await until(case.reflector.synced.is_set)
            assert case.names == {"web"}

    run_virtual(scenario)


def page(names: list[str], token: str) -> bytes:
    items = b",".join(line("x", service(name, 5))[len(b'{"type":"x","object":') : -2] for name in names)
    return (
        b'{"metadata":{"resourceVersion":"101","continue":"'
        + token.encode()
        + b'"},"items":['
        + items
        + b"]}"
    )


def test_continue_token_that_expired_begins_the_list_again_at_once():
    async def scenario() -> None:
        async with running(synced=False) as case:
            case.api.always["stream"] = refuse(422)
            case.api.script["list"] += [
                lambda request: chunks(page(["one"], "token-1")),
                refuse(410, reason="Expired"),
                lambda request: chunks(page(["one"], "token-2")),
                lambda request: chunks(page(["two"], "")),
            ]
            began = asyncio.get_running_loop().time()
            await until(case.reflector.synced.is_set)
            assert asyncio.get_running_loop().time() - began < 0.1
            assert case.names == {"one", "two"}
            asked = [request.params.get("continue") for request in case.api.asked("list")]
            assert asked == [None, "token-1", None, "token-2"]

    run_virtual(scenario)


@pytest.mark.parametrize(
    ("tokens", "pages", "failure"),
    [
        (["same"] * 10, 2, "no usable continue token"),
        (["a", "b"] * 10, 3, "no usable continue token"),
        (["a", "b", "c"] * 10, 4, "no usable continue token"),
        (
            [str(number) for number in range(2 * MOST_PAGES)],
            MOST_PAGES,
            f"does not end after {MOST_PAGES} pages",
        ),
    ],
)
def test_list_whose_pages_never_end_is_given_up_and_backed_off_from(tokens, pages, failure):
    def answer(body: bytes, request: Request) -> AsyncIterator[bytes]:
        return chunks(body)

    async def scenario() -> None:
        async with running(synced=False) as case:
            case.api.always["stream"] = refuse(422)
            case.api.script["list"] += [partial(answer, page(["one"], token)) for token in tokens]
            await until(lambda: case.reflector.failure != "" or case.reflector.synced.is_set())
            assert failure in case.reflector.failure
            assert len(case.api.asked("list")) == pages
            await asyncio.sleep(0.7)
            assert len(case.api.asked("list")) == pages
            assert not case.reflector.synced.is_set()

    run_virtual(scenario)


def test_page_that_fails_once_leaves_the_reflector_unsynced_until_the_list_is_whole():
    async def scenario() -> None:
        async with running(synced=False) as case:
            case.api.always["stream"] = refuse(422)
            case.api.script["list"] += [
                lambda request: chunks(page(["one"], "token-1")),
                refuse(503),
                lambda request: chunks(page(["one"], "token-1")),
                lambda request: chunks(page(["two"], "")),
            ]
            await until(lambda: len(case.api.asked("list")) == 2)
            await asyncio.sleep(0.1)
            assert not case.reflector.synced.is_set()
            assert "503" in case.reflector.failure
            await until(case.reflector.synced.is_set)
            assert case.names == {"one", "two"}
            assert case.reflector.failure == ""

    run_virtual(scenario)


FAULTS: dict[str, Any] = {
    "blank line": lambda request: chunks(b"\n"),
    "half a line": lambda request: chunks(b'{"type":"ADDED","obj'),
    "broken line": lambda request: chunks(b'{"type":"ADDED","obj\n'),
    "no object": lambda request: chunks(b"[]\n"),
    "410 Expired": lambda request: chunks(line("ERROR", status(410, reason="Expired"))),
    "410 Gone": lambda request: chunks(line("ERROR", status(410, reason="Gone"))),
    "500 without a reason": lambda request: chunks(line("ERROR", status(500))),
    "error without a code": lambda request: chunks(line("ERROR", {})),
    "HTTP 410": refuse(410, reason="Expired"),
    "HTTP 429": refuse(429, "3"),
    "HTTP 500": refuse(500),
    "HTTP 503": refuse(503),
    "HTTP 401": refuse(401),
    "HTTP 403": refuse(403),
    "HTTP 404": refuse(404),
    "bookmark with a version only": lambda request: chunks(
        line("BOOKMARK", {"metadata": {"resourceVersion": "101"}})
    ),
    "bookmark without a version": lambda request: chunks(line("BOOKMARK", {})),
    "unexpected kind": lambda request: chunks(line("ADDED", {"kind": "Pod", "metadata": {"name": "x"}})),
    "object without a name": lambda request: chunks(line("ADDED", {"kind": "Service", "metadata": {}})),
    "unknown event": lambda request: chunks(line("SURPRISE", service("web", 101))),
    "odd shapes": lambda request: chunks(line("MODIFIED", {**service("odd", 101), "spec": [{"ports": 7}]})),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_after_any_fault_of_a_watch_the_state_follows_and_nothing_known_was_lost(fault, caplog):
    async def scenario() -> None:
        async with running(web="10.0.0.1") as case:
            case.api.script["watch"].append(FAULTS[fault])
            case.api.cut()
            await until(lambda: not case.api.script["watch"])
            case.api.put("new")
            await until(lambda: "new" in case.names)
            case.api.delete("web")
            await until(lambda: "web" not in case.names)
            assert all(batch.get(("shop", "web"), ...) is not None for batch in case.sink.batches[:-1])

    run_virtual(scenario)
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_that_lasts_is_logged_once_and_not_tried_in_a_hot_loop(fault, caplog):
    async def scenario() -> None:
        async with running(web="10.0.0.1") as case:
            case.api.always["watch"] = FAULTS[fault]
            caplog.clear()
            case.api.cut()
            before = len(case.api.requests)
            await asyncio.sleep(600)
            assert len(case.api.requests) - before < 80
            late = [moment for moment, _, _ in case.api.requests][-6:]
            assert all(later - earlier > 0.5 for earlier, later in pairwise(late) if later != earlier)
            assert case.names >= {"web"}

    run_virtual(scenario)
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) <= 4


@pytest.mark.parametrize("end", [line("ERROR", status(500)), b"broken\n"])
def test_event_in_one_chunk_with_an_error_counts_at_once(end):
    async def scenario() -> None:
        async with running(web="10.0.0.1") as case:
            case.api.script["watch"].append(lambda request: chunks(line("ADDED", service("new", 101)) + end))
            case.api.always["watch"] = case.api.always["stream"] = refuse(503)
            case.api.cut()
            await until(lambda: case.names == {"web", "new"}, within=10)

    run_virtual(scenario)


def test_network_that_answers_nothing_is_tried_ever_more_slowly():
    async def scenario() -> None:
        async with running(web="10.0.0.1") as case:
            case.api.hole = True
            case.api.cut()
            await asyncio.sleep(600)
            moments = [moment for moment, _, _ in case.api.requests]
            assert all(later - earlier >= 30 for earlier, later in pairwise(moments[-4:]))

    run_virtual(scenario)


def test_watch_accepted_and_closed_at_once_for_ever_backs_off_to_half_a_minute():
    async def scenario() -> None:
        async with running(web="10.0.0.1") as case:
            case.api.always["watch"] = lambda request: chunks()
            case.api.cut()
            await asyncio.sleep(300)
            moments = [moment for moment, kind, _ in case.api.requests if kind == "watch"]
            assert all(later - earlier >= 30 for earlier, later in pairwise(moments[-4:]))
            assert case.statistics.watches["short"] > 3

    run_virtual(scenario)


def test_after_a_bookmark_and_a_cut_the_next_watch_asks_for_the_bookmarks_version():
    async def scenario() -> None:
        async with running(web="10.0.0.1") as case:
            case.api.script["watch"].append(lambda request: chunks(bookmark(900)))
            case.api.cut()
            await until(lambda: len(case.api.asked("watch")) == 3)
            assert case.api.asked("watch")[2].params["resourceVersion"] == "900"
            assert len(case.api.asked("stream")) == 1

    run_virtual(scenario)


def test_retry_after_is_honoured():
    async def scenario() -> None:
        async with running(web="10.0.0.1") as case:
            case.api.script["watch"].append(refuse(429, "17"))
            case.api.cut()
            await until(lambda: len(case.api.asked("watch")) == 3)
            moments = [moment for moment, kind, _ in case.api.requests if kind == "watch"]
            assert moments[2] - moments[1] >= 17

    run_virtual(scenario)


def test_both_forms_of_410_list_again_at_once():
    async def scenario(fault: str) -> None:
        async with running(web="10.0.0.1") as case:
            await asyncio.sleep(5)
            case.api.script["watch"].append(FAULTS[fault])
            case.api.cut()
            await until(lambda: len(case.api.asked("stream")) == 2)
            moments = [moment for moment, _, _ in case.api.requests]
            assert moments[-1] - moments[-2] < 0.1

    for fault in ("410 Expired", "410 Gone", "HTTP 410"):
        run_virtual(partial(scenario, fault))


def fail(fault: Fault) -> Any:
    """Fail as the network does."""

    async def answer(request: Request) -> AsyncIterator[bytes]:
        for error in (ApiError(fault, f"cannot {request}: {fault}"),):
            raise error
        yield b""

    return answer


def go_away(api: ScriptedApi, fault: Fault = Fault.CONNECT) -> None:
    api.always = {"stream": fail(fault), "watch": fail(fault)}
    api.cut()


def longest_search(outage: float) -> float:
    """Seconds within which an API server that was away for a time is found."""
    return 1.3 * min(outage / 4 + 1.5, 30)


@pytest.mark.parametrize("outage", [1, 5, 14, 60, 300, 1800])
@pytest.mark.parametrize("fault", [Fault.CONNECT, Fault.CUT])
def test_api_server_that_was_away_is_found_within_a_quarter_of_that_time(outage, fault):
    async def scenario() -> None:
        async with running(web="10.0.0.1") as case:
            await asyncio.sleep(5)
            go_away(case.api, fault)
            await asyncio.sleep(outage)
            case.api.put("new")
            case.api.always.clear()
            await until(partial(case.knows, "new"), within=longest_search(outage) + 0.1)

    run_virtual(scenario)


def test_api_server_that_stays_away_is_tried_once_in_half_a_minute():
    async def scenario() -> None:
        async with running(web="10.0.0.1") as case:
            go_away(case.api)
            await asyncio.sleep(900)
            before = len(case.api.requests)
            await asyncio.sleep(900)
            assert len(case.api.requests) - before <= 30
            assert case.names == {"web"}

    run_virtual(scenario)


@pytest.mark.parametrize("outage", [1, 5, 14, 60, 300])
@pytest.mark.parametrize("fault", ["410 Expired", "HTTP 410"])
def test_version_that_expired_during_an_outage_is_listed_anew_at_once(outage, fault):
    async def scenario() -> None:
        async with running(web="10.0.0.1") as case:
            await asyncio.sleep(5)
            go_away(case.api)
            await asyncio.sleep(outage)
            case.api.put("new", swallow=True)
            case.api.always.clear()
            case.api.script["watch"].append(FAULTS[fault])
            await until(lambda: not case.api.script["watch"])
            await until(partial(case.knows, "new"), within=0.1)

    run_virtual(scenario)


@pytest.mark.parametrize("outage", [0, 60])
@pytest.mark.parametrize("fault", ["410 Expired", "HTTP 410"])
def test_server_whose_versions_always_expire_is_listed_ever_more_slowly(outage, fault):
    async def scenario() -> None:
        async with running(web="10.0.0.1") as case:
            await asyncio.sleep(5)
            go_away(case.api)
            await asyncio.sleep(outage)
            case.api.always = {"watch": FAULTS[fault]}
            before = len(case.api.asked("stream"))
            await asyncio.sleep(600)
            moments = [moment for moment, kind, _ in case.api.requests if kind == "stream"][before:]
            assert 20 <= len(moments) <= 30
            assert all(later - earlier >= 30 for earlier, later in pairwise(moments[-4:]))
            assert len({later - earlier for earlier, later in pairwise(moments[-4:])}) == 3

    run_virtual(scenario)


@pytest.mark.parametrize("lasts", [0.5, 3.0])
def test_server_that_restarts_again_and_again_is_listed_at_once_each_time(lasts):
    async def scenario() -> None:
        async with running(web="10.0.0.1") as case:
            for turn in range(5):
                await asyncio.sleep(lasts)
                case.api.put(f"new-{turn}", swallow=True)
                case.api.script["watch"].append(refuse(410, reason="Expired"))
                case.api.cut()
                await until(partial(case.knows, f"new-{turn}"), within=3.0)
                await until(lambda: case.reflector.live_since is not None, within=0.1)

    run_virtual(scenario)


def test_list_that_is_always_cut_and_then_expires_is_not_tried_in_a_hot_loop():
    async def scenario() -> None:
        async with running(web="10.0.0.1") as case:
            before = len(case.api.requests)
            case.api.script["stream"] += [fail(Fault.CUT), refuse(410)] * 100
            case.api.script["watch"] += [refuse(410)]
            case.api.cut()
            await asyncio.sleep(600)
            assert len(case.api.requests) - before < 80

    run_virtual(scenario)


def test_continue_tokens_that_always_expire_are_backed_off_from():
    async def scenario() -> None:
        async with running(synced=False) as case:
            case.api.always = {"stream": refuse(422), "list": refuse(410, reason="Expired")}
            await asyncio.sleep(600)
            assert len(case.api.asked("list")) <= 30

    run_virtual(scenario)


def test_first_list_after_a_long_outage_begins_the_waiting_anew():
    async def scenario() -> None:
        async with running(synced=False) as case:
            go_away(case.api)
            await asyncio.sleep(300)
            case.api.always.clear()
            case.api.script["watch"] += [refuse(503), refuse(503)]
            case.api.put("web")
            await until(case.reflector.synced.is_set)
            await until(lambda: case.reflector.live_since is not None, within=1.3 * (0.8 + 1.6) + 0.1)

    run_virtual(scenario)


def test_what_was_deleted_or_replaced_while_the_watch_was_cut_is_gone_after_the_relist():
    async def scenario() -> None:
        async with running(x="10.0.0.1", y="10.0.0.2", keep="10.0.0.3") as case:
            case.api.script["watch"].append(refuse(410, reason="Expired"))
            case.api.hole = True
            case.api.cut()
            case.api.delete("x")
            case.api.delete("y")
            case.api.put("z", "10.0.0.1")
            case.api.put("keep", "10.0.0.4")
            case.api.hole = False
            await until(lambda: case.names == {"z", "keep"})
            assert case.sink.state["shop", "keep"].cluster_ips == (pack_address("10.0.0.4"),)
            assert case.statistics.repairs == 0

    run_virtual(scenario)


def test_restored_etcd_with_older_versions_is_taken_over():
    async def scenario() -> None:
        async with running(web="10.0.0.1", lost="10.0.0.2") as case:
            case.api.version = 20
            case.api.history.clear()
            case.api.objects = {"web": service("web", 15, "10.0.0.7")}
            case.api.script["watch"] += [refuse(504, message="Too large resource version")] * 4
            case.api.cut()
            await until(lambda: case.names == {"web"})
            assert case.sink.state["shop", "web"].cluster_ips == (pack_address("10.0.0.7"),)
            case.api.put("new")
            await until(lambda: "new" in case.names)

    run_virtual(scenario)


def test_black_hole_of_ten_minutes_is_healed_within_a_minute_of_its_end():
    async def scenario() -> None:
        for extra in range(0, 60, 7):
            async with running(web="10.0.0.1") as case:
                await asyncio.sleep(20 + extra / 10)
                assert case.age() < 15
                case.api.hole = True
                case.api.put("new")
                await asyncio.sleep(600 + extra)
                assert case.age() > 590
                assert case.names == {"web"}
                case.api.hole = False
                await until(partial(case.knows, "new"), within=60)
                assert case.age() < 1
                assert case.statistics.watches["quiet"] == 1

    run_virtual(scenario)


def test_dead_peer_is_noticed_by_the_clients_own_deadline_and_not_logged_as_an_error(caplog):
    async def scenario() -> None:
        async with running(web="10.0.0.1") as case:
            case.api.script["watch"].append(lambda request: hang())
            case.api.cut()
            await until(lambda: not case.api.script["watch"])
            began = asyncio.get_running_loop().time()
            caplog.clear()
            await until(lambda: case.statistics.watches["quiet"] == 1, within=120)
            asked = float(case.api.asked("watch")[1].params["timeoutSeconds"])
            assert asked < asyncio.get_running_loop().time() - began < asked + 20

    run_virtual(scenario)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_quiet_watch_is_reopened_for_hours_without_a_log_line(caplog):
    async def scenario() -> None:
        async with running(web="10.0.0.1") as case:
            caplog.clear()
            await asyncio.sleep(3 * 3600)
            assert len(case.api.asked("stream")) == 1
            assert case.statistics.watches.keys() == {"timeout"}
            assert 3 * 3600 / 46 <= case.statistics.watches["timeout"] <= 3 * 3600 / 29

    caplog.set_level(logging.INFO)
    run_virtual(scenario)
    assert caplog.records == []


def test_outage_of_half_an_hour_changes_nothing_and_is_tried_once_in_half_a_minute(caplog):
    async def scenario() -> None:
        async with running(web="10.0.0.1") as case:
            case.api.always["watch"] = refuse(503)
            case.api.cut()
            await asyncio.sleep(1800)
            assert case.names == {"web"}
            assert len(case.api.requests) < 70
            assert case.reflector.synced.is_set()
            case.api.put("new")
            del case.api.always["watch"]
            await until(lambda: "new" in case.names, within=45)
            await asyncio.sleep(5)
            assert case.reflector.failure == ""

    run_virtual(scenario)
    assert sum("503" in record.message for record in caplog.records) == 1


def test_before_the_first_sync_every_try_says_what_failed(caplog):
    async def scenario() -> None:
        async with running(synced=False) as case:
            case.api.always["stream"] = refuse(403, message="nobody may")
            await asyncio.sleep(60)
            assert not case.reflector.synced.is_set()
            assert "403: nobody may" in case.reflector.failure
            tries = len(case.api.asked("stream"))
            lines = [
                record.message
                for record in caplog.records
                if "verb 'watch' on resource 'services'" in record.message
            ]
            assert len(lines) == tries
            assert 4 <= tries <= 8

    run_virtual(scenario)


def test_event_that_the_watch_swallowed_is_repaired_by_the_periodic_list_and_counted():
    async def scenario() -> None:
        async with running(relist_period=120, web="10.0.0.1", old="10.0.0.2", stays="10.0.0.3") as case:
            case.api.put("missed", swallow=True)
            case.api.put("web", "10.0.0.9", swallow=True)
            case.api.delete("old", swallow=True)
            case.api.put("seen")
            await until(lambda: "seen" in case.names)
            assert case.names == {"web", "old", "seen", "stays"}
            await until(lambda: case.statistics.repairs > 0, within=200)
            assert case.names == {"web", "missed", "seen", "stays"}
            assert case.sink.state["shop", "web"].cluster_ips == (pack_address("10.0.0.9"),)
            assert case.statistics.repairs == 3
            await asyncio.sleep(600)
            assert case.statistics.repairs == 3
            assert case.statistics.lists["ok"] > 3

    run_virtual(scenario)


def test_periodic_list_amid_changes_counts_no_repair_and_loses_nothing():
    async def scenario() -> None:
        async with running(relist_period=10, web="10.0.0.1", gone="10.0.0.2") as case:
            for turn in range(300):
                case.api.put("web", f"10.0.{turn // 256}.{turn % 256}")
                case.api.put(f"come-{turn}")
                if turn >= 3:
                    case.api.delete(f"come-{turn - 3}")
                await asyncio.sleep(0.37)
            await until(lambda: case.names == set(case.api.objects))
            assert case.statistics.lists["ok"] > 5
            assert case.statistics.repairs == 0

    run_virtual(scenario)


def test_periodic_list_does_not_deliver_what_has_not_changed():
    async def scenario() -> None:
        async with running(relist_period=10, web="10.0.0.1") as case:
            await asyncio.sleep(200)
            assert case.statistics.lists["ok"] > 10
            assert len(case.sink.batches) == 1

    run_virtual(scenario)


def test_periodic_list_that_fails_changes_nothing_and_is_tried_again():
    async def scenario() -> None:
        async with running(relist_period=100, web="10.0.0.1") as case:
            case.api.script["stream"].append(refuse(503))
            case.api.put("missed", swallow=True)
            case.api.put("seen")
            await asyncio.sleep(130)
            assert case.statistics.lists["server"] == 1
            assert case.names == {"web", "seen"}
            await until(lambda: "missed" in case.names, within=100)

    run_virtual(scenario)


def test_periodic_list_does_not_bring_back_what_was_gone_from_a_list_that_replaced_meanwhile():
    async def scenario() -> None:
        async with running(relist_period=120, web="10.0.0.1") as case:
            case.api.put("ghost", swallow=True)
            await until(lambda: len(case.api.asked("stream")) == 2, within=200)
            await asyncio.sleep(0.1)
            case.api.delete("ghost", swallow=True)
            case.api.script["watch"].append(FAULTS["410 Expired"])
            case.api.cut()
            await until(lambda: len(case.api.asked("stream")) == 3)
            await asyncio.sleep(30)
            case.api.put("missed", swallow=True)
            await until(partial(case.knows, "missed"), within=90)
            assert {key for batch in case.sink.batches for key in batch} == {
                ("shop", "web"),
                ("shop", "missed"),
            }
            assert case.statistics.repairs == 1

    run_virtual(scenario)


def test_relist_never_removes_before_the_whole_list_was_seen():
    async def slow(request: Request) -> AsyncIterator[bytes]:
        yield line("ADDED", service("web", 101))
        await asyncio.sleep(5)
        yield line("ADDED", service("b", 102))
        yield bookmark(110, ends_list=True)

    async def scenario() -> None:
        async with running(web="10.0.0.1", b="10.0.0.1", c="10.0.0.1") as case:
            case.api.script["stream"].append(slow)
            case.api.script["watch"].append(refuse(410))
            case.api.cut()
            await until(lambda: len(case.api.asked("stream")) == 2)
            await asyncio.sleep(4)
            assert case.names == {"web", "b", "c"}
            await until(lambda: case.names == {"web", "b"})

    run_virtual(scenario)


class FragileSink(RecordingSink[Service]):
    def __init__(self) -> None:
        super().__init__()
        self.broken = False

    def apply(self, changes: Any) -> None:
        if self.broken:
            self.broken = False
            raise RuntimeError("a fault of the sink")
        super().apply(changes)


def test_fault_of_the_sink_does_not_end_the_watch_and_all_objects_are_delivered_again(caplog):
    async def scenario() -> None:
        sink = FragileSink()
        case = Running(sink=sink)
        case.api.put("web")
        task = spawn(case.reflector.run(), name="under test")
        await until(lambda: case.reflector.live_since is not None)
        sink.broken = True
        case.api.put("new")
        await until(lambda: {key[1] for key in sink.state} == {"web", "new"})
        assert [set(batch) for batch in sink.batches] == [
            {("shop", "web")},
            {("shop", "web"), ("shop", "new")},
        ]
        await cancel(task)

    run_virtual(scenario)
    assert any(record.exc_info for record in caplog.records)


def test_object_left_out_in_part_is_named_once_however_often_it_comes(caplog):
    async def scenario() -> None:
        async with running(web="10.0.0.1") as case:
            for _ in range(5):
                case.api.put("web", "not an address")
            await until(lambda: case.sink.state["shop", "web"].cluster_ips == ())

    run_virtual(scenario)
    lines = [record.message for record in caplog.records if "shop/web" in record.message]
    assert lines == ["Service shop/web: left out: cluster IP 'not an address' is not an IP address"]


def test_many_objects_are_delivered_in_small_batches():
    async def scenario() -> None:
        async with running(synced=False) as case:
            for number in range(1000):
                case.api.put(f"svc-{number}")
            await until(case.reflector.synced.is_set)
            assert len(case.names) == 1000
            assert max(len(batch) for batch in case.sink.batches) <= 100

    run_virtual(scenario)


def test_hundred_relists_amid_changes_never_remove_what_exists():
    async def scenario() -> None:
        async with running(synced=False) as case:
            for number in range(50):
                case.api.put(f"stays-{number}", f"10.0.1.{number}")
            await until(lambda: case.reflector.live_since is not None)
            for turn in range(100):
                case.api.put(f"stays-{turn % 50}", f"10.0.2.{turn}")
                case.api.script["watch"].append(refuse(410, reason="Expired"))
                await asyncio.sleep(3)
                case.api.cut()
                await until(partial(case.relisted, turn + 2))
            await until(lambda: len(case.names) == 50)
            removed = {key for batch in case.sink.batches for key, value in batch.items() if value is None}
            assert removed == set()
            assert case.sink.state["shop", "stays-49"].cluster_ips == (pack_address("10.0.2.99"),)

    run_virtual(scenario)
