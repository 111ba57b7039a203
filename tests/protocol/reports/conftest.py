"""A cluster to tell the reports on."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.protocol.reports.apicluster import Cluster
from tests.protocol.served import own_loop


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    with own_loop() as loop:
        yield loop


@pytest.fixture
def cluster(loop: asyncio.AbstractEventLoop) -> Cluster:
    return Cluster(loop)
