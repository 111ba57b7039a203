"""Each import rule bites: one violation is planted in a copy of the tree, and import-linter must see it."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copy, copytree, ignore_patterns

import pytest

ROOT = Path(__file__).parents[2]
PLANTED = [
    ("kubedns.zone.federation", "kubedns.skydns.chaos", "kubedns: rooms are siblings"),
    ("kubedns.dns.names", "kubedns.shared.files", "kubedns: rooms are siblings"),
    ("kubedns.transport.udp", "kubedns.local.failure", "kubedns: rooms are siblings"),
    ("kubedns.cluster.watchstream", "kubedns.cluster.reflector", "cluster: "),
    ("kubedns.local.api.shapes", "kubedns.local.api.store", "local/api: "),
    ("healthz.results", "kubedns.telemetry.counters", "nanny and healthz see"),
    ("healthz.results", "kubedns.objects", "nanny and healthz see"),
    ("nanny.files", "kubedns.process.garbage", "nanny and healthz see"),
    ("nanny.files", "healthz.counters", "nobody else imports healthz"),
    ("healthz.results", "nanny.options", "nobody else imports the nanny"),
    ("kubedns.telemetry.summary", "nanny.options", "nobody else imports the nanny"),
    ("kubedns.zone.federation", "asyncio", "pure rooms"),
    ("kubedns.zone.dump", "socket", "pure rooms"),
    ("kubedns.dns.names", "os", "pure rooms"),
    ("nanny.arguments", "subprocess", "pure rooms"),
    ("nanny.supervisor", "time", "pure rooms"),
    ("healthz.counters", "time", "pure rooms"),
    ("kubedns.cluster.session", "kubernetes", "kubernetes only"),
    ("kubedns.dns.records", "dnslib", "dnslib only"),
    ("kubedns.skydns.chaos", "aiohttp", "aiohttp only"),
    ("healthz.options", "prometheus_client", "prometheus_client only"),
    ("nanny.options", "watchfiles", "watchfiles only"),
    ("kubedns.zone.dump", "orjson", "orjson only"),
]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory) -> dict[tuple[str, str, str], str]:
    """Plant every violation in a copy of its own, and return what import-linter said of it."""
    base = tmp_path_factory.mktemp("planted")
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda item: _verdict(base / str(item[0]), item[1]), enumerate(PLANTED))
        return dict(zip(PLANTED, found, strict=True))


def _verdict(copied: Path, planted: tuple[str, str, str]) -> str:
    for package in ("kubedns", "nanny", "healthz"):
        copytree(ROOT / package, copied / package, ignore=ignore_patterns("__pycache__"))
    copy(ROOT / "pyproject.toml", copied)
    importer, imported, _ = planted
    module = copied / f"{importer.replace('.', '/')}.py"
    module.write_text(f"{module.read_text()}\nimport {imported}\n")
    script = "import sys; sys.path.insert(0, ''); from importlinter.cli import lint_imports_command as lint; lint()"
    done = subprocess.run(
        [sys.executable, "-c", script, "--no-cache"],
        cwd=copied,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.timeout(300)
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: f"{planted[0]} imports {planted[1]}")
def test_planted_import_breaks_its_rule(verdicts, planted):
    broken = [line for line in verdicts[planted].splitlines() if " BROKEN" in line]
    assert any(line.startswith(planted[2]) for line in broken), verdicts[planted]
