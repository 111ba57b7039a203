"""Build the three images: `python3 deploy/images/build.py`, as `make images` does.

In: the Dockerfiles, the version in kubedns/__init__.py, pip's settings of this machine.
Out: three tagged images, and a table of their sizes.  The base is pulled; without a registry
it is made from Debian's archive (base.sh).
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from deploy.images.engine import Engine, EngineError, able_to_run, find_engine

ROOT = Path(__file__).resolve().parents[2]
ROLES = {"kubedns": "kubedns", "nanny": "dnsmasq-nanny", "healthz": "exechealthz"}
"""Dockerfile suffix -> last part of the image's name."""
BASE = "docker.io/library/python:3.13-slim-trixie"
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
"""The time of every file in the images: the same for all commits, so that a layer that did not change is not
pulled again."""
LOCAL_BASE = "localhost/kube-dns/base:trixie"


def version() -> str:
    """The version of the distribution, from its one place."""
    text = (ROOT / "kubedns" / "__init__.py").read_text()
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    if found is None:
        raise EngineError('kubedns/__init__.py has no line __version__ = "..."')
    return found[1]


def image_names(prefix: str = "localhost/kube-dns/", tag: str = "") -> dict[str, str]:
    """Return role -> image name, as settings.env of the manifests has them."""
    return {role: f"{prefix}{name}:{tag or version()}" for role, name in ROLES.items()}


def ensure_base(engine: Engine, wanted: str = "", platform: str = "") -> str:
    """Return the name of a base image that is stored here; pull or make it where it is not.

    A base asked for by name is never replaced by another.  Raises EngineError.
    """
    local = f"{LOCAL_BASE}{suffix(platform)}"
    # A stored image of the common name may be for this machine's platform.
    for name in (wanted,) if wanted else (local,) if platform else (BASE, local):
        if engine.has_image(name):
            return name
    try:
        engine.call("pull", "--quiet", *platform_flags(platform), wanted or BASE, timeout=300)
    except EngineError as error:
        if wanted:
            raise
        sys.stdout.write(
            f"no registry ({str(error).splitlines()[-1][:160]}); making {local} from Debian's archive" + "\n"
        )
        command = [str(ROOT / "deploy/images/base.sh"), engine.program, local, architecture(platform)]
        made = subprocess.run(command, check=False)
        if made.returncode != 0:
            raise EngineError(f"base.sh ended with status {made.returncode}") from error
        return local
    return wanted or BASE


def architecture(platform: str) -> str:
    """Return the last part of a platform, `arm64` of `linux/arm64`."""
    return platform.rpartition("/")[2]


def suffix(platform: str) -> str:
    """Return what the tags of a platform end in; nothing for this machine's own, which is the empty one."""
    return f"-{architecture(platform)}" if platform else ""


def platform_flags(platform: str) -> list[str]:
    """Return the flag that an engine is told a platform by."""
    return [f"--platform={platform}"] if platform else []


@contextmanager
def pip_settings() -> Iterator[list[str]]:
    """Yield build flags that give pip this machine's index and authority, as build secrets.

    Secrets stay out of the images' layers and history.  Without settings there are none.
    """
    lines, flags = ["[global]"], []
    if index := os.environ.get("PIP_INDEX_URL"):
        lines.append(f"index-url = {index}")
    authority = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
    if authority and Path(authority).is_file():
        lines.append("cert = /run/secrets/ca.crt")
        flags.append(f"--secret=id=ca.crt,src={Path(authority).resolve()}")
    if len(lines) == 1:
        yield []
        return
    with tempfile.TemporaryDirectory() as directory:
        settings = Path(directory, "pip.conf")
        settings.write_text("\n".join(lines) + "\n")
        yield [*flags, f"--secret=id=pip.conf,src={settings}"]


def build(
    engine: Engine, base: str, names: dict[str, str], platform: str = "", *, cached: bool = True
) -> None:
    """Build every image of `names`, `cached` with what builds before left; raises EngineError with the end of a failed build's output."""
    subcommand = "bud" if engine.program == "buildah" else "build"
    with pip_settings() as secrets:
        for role, name in names.items():
            started = time.monotonic()
            engine.call(
                subcommand,
                "--network=host",
                *engine.run_flags,
                *platform_flags(platform),
                *([] if cached else ["--no-cache"]),
                *secrets,
                f"--build-arg=BASE={base}",
                f"--build-arg=VERSION={version()}",
                f"--build-arg=REVISION={revision()}",
                f"--build-arg=SOURCE_DATE_EPOCH={EPOCH}",
                *([] if engine.program == "docker" else [f"--timestamp={EPOCH}"]),
                f"--tag={name}",
                f"--file={ROOT / f'Dockerfile.{role}'}",
                str(ROOT),
                timeout=1800,
            )
            sys.stdout.write(f"{name}  built in {time.monotonic() - started:.0f} s" + "\n")


def revision() -> str:
    """The commit that is built, or `unknown` outside a checkout."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def size_table(engine: Engine, names: dict[str, str]) -> str:
    """Return a line for each image: its size, and what it adds to the layer they share."""
    lines = [f"{'image':44} {'MB':>6} {'own MB':>7}"]
    for name in names.values():
        own = "" if engine.program == "buildah" else f"{sum(engine.layers(name)[1:]):7.1f}"
        lines.append(f"{name:44} {engine.megabytes(name):6.1f} {own}")
    return "\n".join(lines)


def main() -> int:
    """Build, print sizes; 1 and a message when something is missing."""
    parser = argparse.ArgumentParser(description="Build the images of the add-on.")
    parser.add_argument(
        "--engine", default="", help="docker, podman or buildah (default: the first there is)"
    )
    parser.add_argument(
        "--base", default="", help=f"base image (default {BASE}, made locally without a registry)"
    )
    parser.add_argument(
        "--prefix", default="localhost/kube-dns/", help="prefix of the names (default %(default)s)"
    )
    parser.add_argument("--tag", default="", help="tag (default: the version)")
    parser.add_argument(
        "--platform",
        default="",
        help="linux/arm64, for instance, where this machine can emulate it; its tag ends in -arm64",
    )
    options = parser.parse_args()
    try:
        engine = find_engine(options.engine)
        base = ensure_base(engine, options.base, options.platform)
        if engine.program != "buildah":
            engine = able_to_run(engine, base)
        names = image_names(options.prefix, options.tag or version() + suffix(options.platform))
        build(engine, base, names, options.platform)
        sys.stdout.write(size_table(engine, names) + "\n")
    except EngineError as error:
        sys.stderr.write(f"images: {error}" + "\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
