"""Leave out of an image's virtualenv what its program never imports: `python slim.py VENV PACKAGE`.

In: a virtualenv into which an image's requirements were installed, and the package of its program.
Out: the same without symbols and sources of extensions, type stubs and tests, and with the part of the
`kubernetes` library that reads kubeconfigs: its 50 MB of models and APIs are imported by nobody here.

`--kubecfg-file` with tokens, certificates, exec plugins and OIDC goes on working, which
tests/e2e/pod/test_kubeconfigs.py tries in the image.  Runs while the image is built.
"""

import shutil
import subprocess
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path

PROGRAMS = {"kubedns": "kube-dns", "nanny": "dnsmasq-nanny", "healthz": "exechealthz"}
NEVER_RUN = (
    *("*.c", "*.h", "*.hash", "*.pxd", "*.pyi", "*.pyx", "*_test.py", "py.typed"),
    *("_testcapi*", "tests", "test", ".hash"),
)
KUBERNETES = {
    "": ("client", "config", "utils"),
    "client": ("api_client.py", "api_response.py", "configuration.py", "exceptions.py", "models", "rest.py"),
    "client/models": (),
    "config": ("*.py",),
    "utils": ("_retry_base.py", "keepalive.py", "retry.py"),
}
"""Folder of the library -> what stays in it."""
IMPORTS = {
    "": "",
    "client": "from kubernetes.client.api_client import ApiClient\n"
    "from kubernetes.client.configuration import Configuration\n",
    "client/models": "",
    "utils": "",
}
"""Folder of the library -> its __init__.py, instead of one that imports everything."""
SHARED = ("kubedns/__init__.py", "kubedns/dns", "kubedns/shared")
"""What nanny and healthz import of kubedns; the import contracts in pyproject.toml allow no more."""
UNUSED = ("durationpy", "tzdata", "websocket-client")
"""Distributions that only what is left out imports."""


def slim(library: Path, program: str) -> None:
    """Slim a virtualenv's site-packages."""
    slim_own(library, program)
    for pattern in NEVER_RUN:
        for path in list(library.rglob(pattern)):
            remove(path)
    for module in library.rglob("*.so"):
        subprocess.run(["strip", "--strip-unneeded", str(module)], check=True)
    if (library / "kubernetes").is_dir():
        slim_kubernetes(library / "kubernetes")
        remove(library / "pydantic" / "v1")
        for distribution in distributions(path=[str(library)]):
            if distribution.name in UNUSED:
                remove_distribution(library, distribution)


def slim_own(library: Path, program: str) -> None:
    """Leave of the three programs' packages what one of them imports."""
    for other in PROGRAMS.keys() - {program, "kubedns"}:
        remove(library / other)
    for path in list((library / "kubedns").iterdir()):
        if program != "kubedns" and f"kubedns/{path.name}" not in SHARED:
            remove(path)


def slim_kubernetes(package: Path) -> None:
    """Leave what reads kubeconfigs; raises FileNotFoundError where the library has changed its shape."""
    for folder, kept in KUBERNETES.items():
        staying = {path for pattern in kept for path in (package / folder).glob(pattern)}
        if len(staying) < len(kept):
            raise FileNotFoundError(f"kubernetes/{folder} has not all of {', '.join(kept)}: see slim.py")
        for path in list((package / folder).iterdir()):
            if path not in staying and path.name != "__init__.py":
                remove(path)
        if folder in IMPORTS:
            (package / folder / "__init__.py").write_text(IMPORTS[folder])


def remove_distribution(library: Path, distribution: Distribution) -> None:
    """Remove what a distribution installed."""
    for name in {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}:
        remove(library / name)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    virtualenv, package = Path(sys.argv[1]), sys.argv[2]
    (found,) = virtualenv.glob("lib/python3.*/site-packages")
    slim(found, package)
    for script in list((virtualenv / "bin").iterdir()):
        if not script.name.startswith("python") and script.name != PROGRAMS[package]:
            remove(script)
