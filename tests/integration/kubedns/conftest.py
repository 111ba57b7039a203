"""The cases' cluster behind a local API, and record servers that end with their test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.kubedns.programs import KubeDns, LocalApi

CLUSTER = Path(__file__).parents[2] / "data" / "cases" / "cluster.json"


@pytest.fixture(scope="session")
def cases_api() -> Iterator[LocalApi]:
    """The cluster of the cases, for tests that change nothing."""
    with LocalApi(str(CLUSTER)) as api:
        yield api


@pytest.fixture
def start() -> Iterator[Callable[..., KubeDns]]:
    """Start record servers with flags and, as `environ`, variables."""
    with ExitStack() as running:
        yield lambda *flags, environ=None: running.enter_context(KubeDns(*flags, environ=environ))


@pytest.fixture
def start_api() -> Iterator[Callable[..., LocalApi]]:
    """Start local APIs with their words."""
    with ExitStack() as running:
        yield lambda *words: running.enter_context(LocalApi(*words))
