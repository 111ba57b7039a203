"""What a developer's machine may lack is skipped there; in CI it fails.

kubectl is in no distribution in a version that knows today's kustomize, so it is not installed for
the tests.  Everything else that they need is.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

OLDEST_KUBECTL = 27
"""Minor version of the first kubectl whose kustomize renders the manifests' components."""
ROOT = Path(__file__).parents[1]
NEED_KUBECTL = (ROOT / "tests/deploy", ROOT / "tests/integration/local/test_local_kubectl.py")
"""Folders and modules; elsewhere a test has the mark `kubectl`."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    concerned = [
        item
        for item in items
        if "kubectl" in item.keywords or any(item.path.is_relative_to(path) for path in NEED_KUBECTL)
    ]
    if not concerned or os.environ.get("CI") or (lack := why_no_kubectl()) is None:
        return
    for item in concerned:
        item.add_marker(pytest.mark.skip(reason=lack))


def why_no_kubectl() -> str | None:
    """Return what is wrong with this machine's kubectl, None if nothing is."""
    program = shutil.which("kubectl")
    if program is None:
        return "no kubectl on this machine"
    done = subprocess.run(
        [program, "version", "--client", "-o", "json"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    try:
        minor = int(json.loads(done.stdout)["clientVersion"]["minor"].rstrip("+"))
    except (ValueError, LookupError):
        return f"{program} does not tell its version"
    return None if minor >= OLDEST_KUBECTL else f"kubectl 1.{minor} is older than 1.{OLDEST_KUBECTL}"
