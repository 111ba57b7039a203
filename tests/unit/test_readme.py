"""The README against the code: what it says of flags is what `--help` says."""

import re
from pathlib import Path

import pytest

from healthz.options import FLAGS as HEALTHZ_FLAGS
from kubedns.config.options import FLAGS as KUBEDNS_FLAGS
from kubedns.shared.flags import Flag
from nanny.options import FLAGS as NANNY_FLAGS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PROGRAMS = {"kube-dns": KUBEDNS_FLAGS, "dnsmasq-nanny": NANNY_FLAGS, "exechealthz": HEALTHZ_FLAGS}


def row(flag: Flag) -> str:
    shown = flag.shown if flag.shown is not None else str(flag.default)
    shown = "" if shown in {"", "()", "None"} else shown
    default = f"`{shown}`" if shown and " " not in shown else shown
    return f"| `--{flag.name}` | {default} | {flag.help.replace('|', '/')} |"


def section(program: str) -> str:
    return README.split(f"### {program}\n", 1)[1].split("\n## ")[0].split("\n### ")[0]


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_flag_has_the_row_that_its_help_makes(program):
    wanted = [row(flag) for flag in PROGRAMS[program] if flag.name not in {"help", "version"}]
    assert [line for line in section(program).splitlines() if line.startswith("| `--")] == wanted


def test_files_and_make_targets_that_the_readme_names_exist():
    makefiles = "".join(path.read_text() for path in [ROOT / "Makefile", *ROOT.glob("*.mk")])
    for target in re.findall(r"`?make ([a-z][a-z0-9-]*)", README):
        assert re.search(rf"^{target}:", makefiles, re.MULTILINE), f"make {target}"
    for path in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / path).exists(), path
