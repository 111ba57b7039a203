"""Make what a release consists of: `python -m deploy.images.release`, as `make release` does.

In: a clean checkout, an engine that is podman, Debian's archive, the package index.
Out: a directory with wheel and source distribution, one OCI archive for each image with all platforms under
one manifest list, the rendered manifests with the lists' digests, bills of materials, and SHA256SUMS.
The images are built without a cache, so that a second run has the same digests as long as Debian's archive
has the same packages.  Each is run once: `--version`, under emulation for another platform.
"""

import argparse
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from deploy.images import sbom
from deploy.images.build import ROLES, ROOT, build, ensure_base, image_names, suffix, version
from deploy.images.engine import Engine, EngineError, able_to_run, find_engine

SETTINGS = {"kubedns": "KUBEDNS_IMAGE", "nanny": "NANNY_IMAGE", "healthz": "HEALTHZ_IMAGE"}


def run(*words: str | Path, **environment: str) -> str:
    """Run a program to its end and return its output; raises EngineError with its own words."""
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=600, check=False, env={**os.environ, **environment}
    )
    if done.returncode != 0:
        raise EngineError(f"{words[0]}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def packages(output: Path) -> None:
    """Build wheel and source distribution."""
    commit_time = run("git", "-C", str(ROOT), "log", "-1", "--format=%ct").strip()
    uv = (sys.executable, "-m", "uv", "build", "--quiet", "--out-dir", output, ROOT)
    run(*uv, SOURCE_DATE_EPOCH=commit_time)


def images(prefix: str, platforms: Sequence[str]) -> dict[str, list[str]]:
    """Build and run each image for each platform; return role -> the names of its images."""
    built: dict[str, list[str]] = {role: [] for role in ROLES}
    for platform in platforms:
        engine = find_engine("podman")
        base = ensure_base(engine, platform=platform)
        engine = able_to_run(engine, base)
        names = image_names(prefix, version() + suffix(platform))
        build(engine, base, names, platform, cached=False)
        for role, name in names.items():
            said = engine.run("--rm", "--network=none", "--read-only", name, "--version", timeout=120)
            sys.stdout.write(f"{platform}: {said}\n")
            built[role].append(name)
    return built


def archive(engine: Engine, name: str, parts: Sequence[str], target: Path) -> str:
    """Write one OCI archive with all platforms of an image; return the digest of its manifest list."""
    engine.call("rmi", "--force", name, check=False)
    engine.call("manifest", "rm", name, check=False)
    engine.call("manifest", "create", name)
    for part in parts:
        engine.call("manifest", "add", name, f"containers-storage:{part}")
    with tempfile.TemporaryDirectory() as directory:
        layout = Path(directory, "layout")
        engine.call("manifest", "push", "--all", name, f"oci:{layout}:{version()}", timeout=300)
        engine.call("manifest", "rm", name)
        (entry,) = json.loads((layout / "index.json").read_text())["manifests"]
        with tarfile.open(target, "w") as tar:
            for path in sorted(layout.rglob("*")):
                if path.is_file():
                    info = tarfile.TarInfo(str(path.relative_to(layout)))
                    info.size, info.mode = path.stat().st_size, 0o644
                    tar.addfile(info, io.BytesIO(path.read_bytes()))
    digest: str = entry["digest"]
    return digest


def manifests(references: dict[str, str], output: Path) -> None:
    """Render the base and every overlay with image names that end in digests."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory, "deploy")
        shutil.copytree(ROOT / "deploy", copy, ignore=shutil.ignore_patterns("__pycache__"))
        settings = copy / "settings/settings.env"
        text = settings.read_text()
        for role, reference in references.items():
            text = re.sub(rf"(?m)^{SETTINGS[role]}=.*$", f"{SETTINGS[role]}={reference}", text)
        settings.write_text(text)
        output.mkdir()
        for overlay in (copy, *sorted((copy / "overlays").iterdir())):
            name = "kube-dns" if overlay == copy else f"kube-dns-{overlay.name}"
            (output / f"{name}.yaml").write_text(run("kubectl", "kustomize", overlay))


def sums(output: Path) -> Iterator[str]:
    """Yield the lines of SHA256SUMS."""
    for path in sorted(output.rglob("*")):
        if path.is_file() and path.name != "SHA256SUMS":
            yield f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(output)}\n"


def release(prefix: str, platforms: Sequence[str], output: Path) -> None:
    """Fill the directory, which is emptied first; raises EngineError."""
    if run("git", "-C", str(ROOT), "status", "--porcelain").strip():
        raise EngineError("the checkout has changes that are not committed: a release is made of a commit")
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    packages(output)
    (output / ".gitignore").unlink(missing_ok=True)
    built = images(prefix, platforms)
    # Another platform than this machine's has a suffix; the plain name is the list of all.
    references = {}
    engine = find_engine("podman")
    for role, name in image_names(prefix).items():
        digest = archive(engine, name, built[role], output / f"{ROLES[role]}-{version()}.oci.tar")
        references[role] = f"{name}@{digest}"
        sys.stdout.write(f"{references[role]}  {', '.join(platforms)}\n")
    manifests(references, output / "manifests")
    (output / "sbom").mkdir()
    for role, parts in built.items():
        runner = able_to_run(engine, parts[0], "/opt/kube-dns/bin/python", "-V")
        (output / "sbom" / f"{ROLES[role]}.cdx.json").write_text(sbom.bill(runner, parts[0]))
    (output / "SHA256SUMS").write_text("".join(sums(output)))


def main() -> int:
    """Make the release; 1 and a message when something is missing."""
    parser = argparse.ArgumentParser(description="Make what a release consists of.")
    parser.add_argument("--engine", choices=["podman"], default="podman")
    parser.add_argument("--prefix", default="localhost/kube-dns/")
    parser.add_argument("--platform", action="append", required=True, help="linux/amd64; may be repeated")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    try:
        release(options.prefix, options.platform, options.output)
    except EngineError as error:
        sys.stderr.write(f"release: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
