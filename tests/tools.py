"""Programs of other packages that tests run.

Each use names its Debian package, `tool("kdig:knot-dnsutils")`, as tools/need takes it; the target of
the Makefile that runs the test asks for the same (tests/unit/test_tools.py).
"""

import os
import shutil


def tool(pair: str) -> str:
    """Return the path of a program given as `PROGRAM:PACKAGE`; a missing one fails the test with the package."""
    program, _, package = pair.partition(":")
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    found = shutil.which(program, path=path)
    assert found is not None, f"this test needs {program}: apt-get install {package}"
    return found
