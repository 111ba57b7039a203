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
from dataclasses import dataclass, field, replace
from typing import Any

from kubedns.dns.names import Labels, parse_domain, to_text
from kubedns.shared.config import Config, InvalidConfigError, parse_config
from kubedns.shared.report import Configuration, Refusal
from kubedns.shared.servers import ServerAddress

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InForce:
    """What the forwarder and the zone work with."""

    nameservers: tuple[ServerAddress, ...] = ()
    stub_domains: Mapping[Labels, tuple[ServerAddress, ...]] = field(default_factory=dict)
    federations: Mapping[str, str] = field(default_factory=dict)

    def as_keys(self) -> dict[str, Any]:
        """Return the configuration keys that say the same, in their JSON form, without the absent ones."""
        keys = {
            "upstreamNameservers": [str(server) for server in self.nameservers],
            "stubDomains": {
                to_text(domain).removesuffix("."): [str(server) for server in servers]
                for domain, servers in self.stub_domains.items()
            },
            "federations": dict(self.federations),
        }
        return {key: value for key, value in keys.items() if value}


class Settings:
    """Keeps the last good configuration; `apply` is called whenever what is in force changes.

    `reloads` counts updates by outcome: applied, unchanged, refused, unreadable.  `configuration`
    tells what is in force and why the latest update is not.
    """

    def __init__(
        self,
        domain: Labels,
        flags: InForce,
        resolv_conf: Callable[[], tuple[ServerAddress, ...]],
        apply: Callable[[InForce], None],
    ) -> None:
        self.reloads: Counter[str] = Counter()
        self.configuration = Configuration("flags and /etc/resolv.conf")
        self._domain = to_text(domain)
        self._flags = flags
        self._resolv_conf = resolv_conf
        self._apply = apply
        self._config = Config()
        self._warned: tuple[str, ...] = ()
        self._in_force: InForce | None = None
        self._started = False

    def start(self) -> None:
        """Apply what is in force for the first time: nothing is applied before."""
        self._started = True
        self.refresh()

    def refresh(self) -> None:
        """Work out what is in force, after resolv.conf may have changed, and apply it if it differs."""
        if not self._started:
            return
        in_force = self._merged()
        if in_force != self._in_force:
            self._in_force = in_force
            self.configuration = replace(self.configuration, in_force=in_force.as_keys())
            self._apply(in_force)

    async def offer(self, data: Mapping[str, bytes], source: str) -> None:
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
        self.reloads["applied" if config != before else "unchanged"] += 1
        self.configuration = replace(self.configuration, source=source, refused=(), last_success=time.time())
        if config != before:
            _log.info("%s is in force", source)
        self.refresh()

    def unreadable(self, error: Exception) -> None:
        """Note that the keys could not be read; what is in force stays."""
        self.reloads["unreadable"] += 1
        self._note_refusal(Refusal("", str(error)))
        _log.error("%s; the settings in force stay", error)

    def _note_refusal(self, *faults: Refusal) -> None:
        self.configuration = replace(self.configuration, refused=faults)

    def _merged(self) -> InForce:
        config = self._config
        upstreams = config.upstream_nameservers or self._flags.nameservers or self._resolv_conf()
        stubs = {
            parse_domain(name, underscores=True): servers for name, servers in config.stub_domains.items()
        }
        return InForce(upstreams, stubs, config.federations or self._flags.federations)
