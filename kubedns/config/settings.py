"""The settings that can change while the server runs, and where they come from.

In: the configuration keys, as often as they change; the flags; resolv.conf.  Out: the settings in
force.  A bad update is refused whole and what was in force stays; at the start that is what the
flags say.  The keys beat the flags, which beat resolv.conf.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from kubedns.dns.names import Labels, to_text
from kubedns.shared.config import Config, InvalidConfigError, parse_config
from kubedns.shared.report import Configuration, Refusal
from kubedns.shared.servers import ServerAddress

_log = logging.getLogger(__name__)


class Settings:
    """Keeps the last good configuration; `apply` is called whenever the effective settings change.

    `reloads` counts updates by outcome: applied, unchanged, refused, unreadable.  `configuration`
    tells what is in force and why the latest update is not.
    """

    def __init__(
        self,
        domain: Labels,
        flags: Config,
        resolv_conf: Callable[[], tuple[ServerAddress, ...]],
        apply: Callable[[Config], None],
    ) -> None:
        self.reloads: Counter[str] = Counter()
        self.configuration = Configuration("flags and /etc/resolv.conf")
        self._domain = to_text(domain)
        self._flags = flags
        self._resolv_conf = resolv_conf
        self._apply = apply
        self._config = Config()
        self._warned: tuple[str, ...] = ()
        self._effective: Config | None = None
        self._started = False

    def start(self) -> None:
        """Apply the effective settings for the first time: nothing is applied before."""
        self._started = True
        self.refresh()

    def refresh(self) -> None:
        """Work out the effective settings, after resolv.conf may have changed; apply them if they differ."""
        if not self._started:
            return
        effective = self._merged()
        if effective != self._effective:
            self._effective = effective
            self.configuration = replace(self.configuration, in_force=effective.as_keys())
            self._apply(effective)

    async def update(self, data: Mapping[str, bytes], source: str) -> None:
        """Take an update of the keys, or refuse it; `source` names it in the log.

        Read in a thread: a value of 1 MiB takes a second.  One update at a time, in order.
        """
        try:
            config, warnings = await asyncio.to_thread(parse_config, data, self._domain)
        except InvalidConfigError as error:
            self.reloads["refused"] += 1
            self._note_refusal(*(Refusal(fault.key, fault.reason) for fault in error.errors))
            kept = (
                "the flags' settings stay"
                if self._config == Config()
                else "the last good configuration stays"
            )
            _log.error("%s is refused, %s in force: %s", source, kept, error)
            return
        if warnings != self._warned:
            self._warned = warnings
            for warning in warnings:
                _log.warning("%s: %s", source, warning)
        before, self._config = self._config, config
        was_refused = bool(self.configuration.refused)
        self.reloads["applied" if config != before else "unchanged"] += 1
        self.configuration = replace(self.configuration, source=source, refused=(), last_success=time.time())
        if config != before:
            _log.info("%s is in force", source)
        elif was_refused:
            _log.info("%s is good again, and as it was before", source)
        self.refresh()

    def unreadable(self, error: Exception) -> None:
        """Note that the keys could not be read; what is in force stays."""
        self.reloads["unreadable"] += 1
        self._note_refusal(Refusal("", str(error)))
        _log.error("%s; the settings in force stay", error)

    def _note_refusal(self, *faults: Refusal) -> None:
        self.configuration = replace(self.configuration, refused=faults)

    def _merged(self) -> Config:
        config = self._config
        return replace(
            config,
            upstream_nameservers=config.upstream_nameservers
            or self._flags.upstream_nameservers
            or self._resolv_conf(),
            federations=config.federations or self._flags.federations,
        )
