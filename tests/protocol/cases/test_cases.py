"""Questions about a small real cluster, with the answers to give, over UDP and over TCP."""

import json
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.protocol.cases.authority import Authority
from tests.protocol.cases.checking import differences
from tests.protocol.listening import Listening
from tests.protocol.manifest import zone_of
from tests.protocol.reading import Record, ask, read

DATA = Path(__file__).parents[2] / "data" / "cases"
CASES = [json.loads(line) for line in (DATA / "cases.jsonl").read_text().splitlines()]

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def listening():
    authority = Authority(DATA / "upstream.zone")
    server = Listening(zone_of(DATA / "cluster.json"))
    server.forward_to(await authority.start())
    await server.start()
    yield server
    await server.stop()
    await authority.stop()


def named(case: dict[str, Any]) -> str:
    return f"{case['name']} {case['type']}"


async def check(listening: Listening, case: dict[str, Any], *, tcp: bool, payload: int | None = None) -> None:
    query = ask(case["name"], case["type"], rdclass=case.get("class", "IN"), payload=payload)
    reply = read(query, await listening.ask(query, tcp=tcp), tcp=tcp)
    wrong = differences(case["want"], reply)
    assert not wrong, "; ".join([*wrong, case.get("why") or ""])


@pytest.mark.parametrize("case", CASES, ids=named)
async def test_case_over_udp_has_the_wanted_answer(listening, case):
    await check(listening, case, tcp=False)


@pytest.mark.parametrize("case", [case for case in CASES if not case.get("udp_only")], ids=named)
async def test_case_over_tcp_has_the_wanted_answer(listening, case):
    await check(listening, case, tcp=True)


@pytest.mark.parametrize("case", [case for case in CASES if not case.get("udp_only")], ids=named)
async def test_case_with_edns_has_the_wanted_answer_and_an_opt_record(listening, case):
    await check(listening, case, tcp=False, payload=1232)


@pytest.mark.parametrize("case", [case for case in CASES if "cluster.local." in case["name"]], ids=named)
async def test_case_in_mixed_case_has_the_wanted_data(listening, case):
    """0x20: the question comes back as it was, and the data are those of the name in lower case."""
    mixed = "".join(letter.upper() if at % 2 else letter for at, letter in enumerate(case["name"]))
    query = ask(mixed, case["type"], rdclass=case.get("class", "IN"))
    reply = read(query, await listening.ask(query))
    plain = ask(case["name"], case["type"], rdclass=case.get("class", "IN"))
    same = read(plain, await listening.ask(plain))
    assert (reply.rcode, reply.flags) == (same.rcode, same.flags)
    for section in ("answer", "authority", "additional"):
        assert _lower(getattr(reply, section)) == _lower(getattr(same, section))
    owners = {record.owner for record in reply.answer if record.owner.lower() == case["name"].lower()}
    assert owners <= {mixed}


def _lower(records: tuple[Record, ...]) -> set[tuple[str, int, str, str]]:
    return {(r.owner.lower(), r.ttl, r.rdtype, r.rdata.lower()) for r in records}


async def test_all_cases_are_here():
    assert len(CASES) == 368
