"""One line for what stops several list-watches alike, and each other failure its own."""

import asyncio
import logging

from kubedns.cluster.failurelog import FailureLog
from tests.unit.cluster.virtualtime import run_virtual

REFUSED = "the API server https://api refuses the connection"


def test_cause_that_stops_three_watches_is_one_line_for_each_step(caplog):
    async def scenario() -> None:
        log = FailureLog()
        for delay in (1.0, 2.0, 4.0):
            for what in ("services", "endpointslices", "endpointslices"):
                log.note(f"cannot watch {what}: {REFUSED}", delay)
                await asyncio.sleep(0.05)
            await asyncio.sleep(delay)

    run_virtual(scenario)
    assert [record.getMessage() for record in caplog.records] == [
        f"cannot watch services: {REFUSED}; next try in {delay:.1f} s" for delay in (1, 2, 4)
    ]
    assert all(record.levelno == logging.WARNING for record in caplog.records)


def test_other_causes_are_said_at_once(caplog):
    async def scenario() -> None:
        log = FailureLog()
        for what in ("services", "endpointslices"):
            log.note(f"cannot watch {what}: the API server answers 403; allow {what}", 1.0)
        log.note("without a colon", 1.0)

    run_virtual(scenario)
    assert len(caplog.records) == 3
