"""The entry of `python -m kubedns.local`: command line, signals, exit status.

Exit status: 0 after Ctrl-C, SIGTERM or SIGHUP (of the demo: when every answer was right); 1 when
something failed, with one line that says what; 2 for a wrong command line.
"""

import asyncio
import gc
import logging
import os
import signal
import ssl
import sys
from collections.abc import Coroutine
from typing import Any

import kubedns
from kubedns.local.addon import run_up
from kubedns.local.api.manifests import ManifestError
from kubedns.local.api.server import LocalApi
from kubedns.local.demo import run_demo
from kubedns.local.failure import StartError
from kubedns.local.options import PROGRAM, ApiOptions, UpOptions, Wish, from_argv
from kubedns.shared.flags import UsageError
from kubedns.shared.log import program_line, setup_logging

_log = logging.getLogger(__name__)


def main() -> int:
    """Run a command; return its exit status."""
    try:
        options = from_argv(sys.argv[1:])
    except UsageError as error:
        sys.stderr.write(f"{PROGRAM}: {error}\nTry '{PROGRAM} --help'.\n")
        return 2
    match options:
        case Wish():
            program = program_line("kubedns.local", kubedns.__version__)
            sys.stdout.write(f"{program}\n" if options.version else options.text)
            return 0
        case ApiOptions():
            setup_logging(options.verbosity)
            return _run(_serve_api(options))
        case UpOptions():
            setup_logging(options.verbosity)
            command = run_demo if options.demo else run_up
            return _run(command(options))


def _run(work: Coroutine[Any, Any, int]) -> int:
    """Run a command until it ends or a signal ends it."""
    try:
        with asyncio.Runner() as runner:
            return runner.run(_until_signal(work))
    except (StartError, ManifestError) as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the last flush has a place
        return 1


async def _until_signal(work: Coroutine[Any, Any, int]) -> int:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    if task is None:
        raise RuntimeError("not inside a task")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await work
    except asyncio.CancelledError:
        return 0


def _check_files(options: ApiOptions) -> None:
    """Raise StartError for a file that can't be read, with the flag that names it."""
    certificate, key = options.tls or (None, None)
    for flag, path in (("--tls-cert", certificate), ("--tls-key", key), ("--token-file", options.token_file)):
        if path is None:
            continue
        try:
            path.open("rb").close()
        except OSError as error:
            raise StartError(f"{flag}={path}: {error.strerror}") from error


async def _serve_api(options: ApiOptions) -> int:
    _check_files(options)
    api = LocalApi(host=options.bind, port=options.port, tls=options.tls, token_file=options.token_file)
    api.access.anonymous = options.anonymous
    api.access.denied |= options.denied
    gc.disable()  # a large cluster's manifests are a million objects, which all stay or all go
    count = api.load(options.files)
    gc.enable()
    gc.collect()
    gc.freeze()
    try:
        await api.start()
    except ssl.SSLError as error:
        raise StartError(f"--tls-cert, --tls-key: not a certificate and its key: {error}") from error
    except OSError as error:
        raise StartError(f"can't listen on {options.bind} port {options.port}: {error.strerror}") from error
    try:
        _log.info("serving %d objects at %s", count, api.url)
        await asyncio.Event().wait()
    finally:
        await api.stop()
    return 0
