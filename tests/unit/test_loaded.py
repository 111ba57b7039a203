"""Each program loads what it needs, and no more; seen in a fresh interpreter."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("program", "forbidden"),
    [
        ("kubedns.app", ("dnslib", "kubernetes")),
        ("nanny.app", ("dnslib", "kubernetes", "orjson")),
        ("healthz.app", ("kubernetes", "orjson", "watchfiles")),
    ],
)
def test_program_does_not_load(program, forbidden):
    script = f"import sys, {program}; print(*sorted(set(sys.modules) & set({forbidden!r})))"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=50
    )
    assert loaded.stdout.split() == []
