"""The container engine of this machine: which there is, and what it needs to run anything here.

In: the programs on PATH and a base image.  Out: command lines for build, run and inspect.
Only the standard library, so that `make images` runs from a fresh clone.
"""

import json
import os
import resource
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

ENGINES = ("docker", "podman", "buildah")
_BUILDKIT = {"DOCKER_BUILDKIT": "1"}
"""The builder that knows secrets, for a docker that does not use it by itself."""


class EngineError(Exception):
    """An engine is missing or refused; the text says what to do about it."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine: its program, its global flags, and the flags every `run` and `build` gets."""

    program: str
    global_flags: tuple[str, ...] = ()
    run_flags: tuple[str, ...] = ()

    def call(self, *words: str, timeout: float = 60, check: bool = True, merged: bool = False) -> str:
        """Run a subcommand and return its standard output, stripped; `merged`: standard error too.

        Raises EngineError with the last lines of what it printed when it fails.
        """
        command = [self.program, *self.global_flags, *words]
        try:
            done = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if merged else subprocess.PIPE,
                text=True,
                timeout=timeout,
                check=False,
                env={**os.environ, **_BUILDKIT},
            )
        except subprocess.TimeoutExpired as error:
            raise EngineError(f"{' '.join(command)} took longer than {timeout:g} s") from error
        if check and done.returncode != 0:
            tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-12:])
            raise EngineError(f"{' '.join(command)} ended with status {done.returncode}:\n{tail}")
        return done.stdout.strip()

    def run(self, *words: str, timeout: float = 60) -> str:
        """`run` with the flags this machine needs."""
        return self.call("run", *self.run_flags, *words, timeout=timeout)

    def has_image(self, image: str) -> bool:
        """Whether an image of this name is stored here."""
        return bool(self.call("images", "--quiet", image, check=False))

    def inspect_image(self, image: str) -> dict[str, Any]:
        """The engine's description of a stored image."""
        found: dict[str, Any] = json.loads(self.call("image", "inspect", image))[0]
        return found

    def layers(self, image: str) -> list[float]:
        """The sizes of a stored image's layers in MB, the lowest first; docker's or podman's only."""
        if self.program == "podman":
            found = json.loads(self.call("history", "--format=json", image))
            sizes = [float(layer["size"]) for layer in found]
        else:
            sizes = [
                float(it) for it in self.call("history", "--human=false", "--format={{.Size}}", image).split()
            ]
        return [size / 1e6 for size in reversed(sizes) if size]

    def megabytes(self, image: str) -> float:
        """The size of a stored image."""
        if self.program != "buildah":
            return float(self.inspect_image(image)["Size"]) / 1e6
        number, unit = json.loads(self.call("images", "--json", image))[0]["size"].split()
        return float(number) * {"KB": 1e-3, "MB": 1.0, "GB": 1e3}[unit]


def find_engine(wanted: str = "") -> Engine:
    """Return the engine named, or the first of docker, podman and buildah that answers.

    Raises EngineError when there is none.
    """
    for program in (wanted,) if wanted else ENGINES:
        if shutil.which(program) is None:
            continue
        engine = Engine(program)
        try:
            engine.call("version" if program != "buildah" else "--version")
        except EngineError:
            if wanted:
                raise
            continue
        return engine
    missing = wanted or ", ".join(ENGINES)
    raise EngineError(
        f"no container engine: none of {missing} works here (on Debian: apt-get install podman)"
    )


def able_to_run(engine: Engine, image: str, *command: str) -> Engine:
    """Return the engine with the fewest extra flags that let it run a container of `image`.

    `command` is one that the image has and that ends at once, /bin/true by default.

    Where the process limits of this machine are below an engine's own defaults they are passed
    on, and where podman's usual runtime does not start, runc is tried.  Raises EngineError.
    """
    if engine.program == "buildah":
        raise EngineError("buildah only builds; to run a container takes docker or podman")
    program, *words = command or ("/bin/true",)
    limits = _limit_flags()
    runtimes: list[tuple[str, ...]] = [()]
    if engine.program == "podman" and shutil.which("runc"):
        runtimes.append(("--runtime", "runc"))
    reasons: list[str] = []
    for runtime in runtimes:
        for flags in ((), limits):
            candidate = replace(engine, global_flags=runtime, run_flags=flags)
            try:
                candidate.run("--rm", "--network=none", f"--entrypoint={program}", image, *words)
            except EngineError as error:
                reasons.append(str(error))
            else:
                return candidate
    raise EngineError("no container starts on this machine:\n" + "\n".join(_unique(reasons)))


def _limit_flags() -> tuple[str, ...]:
    flags = []
    for name, kind in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
        hard = resource.getrlimit(kind)[1]
        value = 4096 if hard == resource.RLIM_INFINITY else min(hard, 4096)
        flags.append(f"--ulimit={name}={value}:{value}")
    return tuple(flags)


def _unique(texts: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(texts))
