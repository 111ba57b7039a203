"""Asks dnsmasq itself whether it takes some arguments: `dnsmasq --test`.

In: the arguments of the child to be.  Out: None, or dnsmasq's complaint.
"""

import asyncio
import signal
from collections import deque
from typing import Final

from nanny.arguments import Arguments
from nanny.child import Child
from nanny.reaper import Reaper

_TIMEOUT: Final = 5.0
_LINES_KEPT = 3


async def refusal(dnsmasq: str, arguments: Arguments, reaper: Reaper) -> str | None:
    """Return why dnsmasq refuses the arguments, None when it takes them.

    Raises OSError when dnsmasq cannot be executed.
    """
    lines: deque[str] = deque(maxlen=_LINES_KEPT)
    child = Child((dnsmasq, "--test", *arguments), reaper, lines.append)
    try:
        async with asyncio.timeout(_TIMEOUT):
            status = await asyncio.shield(child.ended)
    except TimeoutError:
        return f"{dnsmasq} --test did not end within {_TIMEOUT:g} s"
    finally:
        child.signal_group(signal.SIGKILL)
    if status.code == 0:
        return None
    return " ".join(lines) or f"{dnsmasq} --test {status}"
