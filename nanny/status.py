"""The nanny's account of itself, served as JSON at `/status` of the metrics port.

In: the reloader, the checks of name servers, what was counted.  Out: one object per request, in
the shapes of `kubedns.shared.report`.
"""

import json
import time

from kubedns import __version__
from kubedns.shared.report import as_json, process_report
from kubedns.shared.upstreamcheck import UpstreamChecks
from nanny.metrics import Metrics
from nanny.options import PROGRAM
from nanny.reload import Reloader


class Status:
    """Writes the account; it keeps nothing but references."""

    def __init__(self, reloader: Reloader, upstreams: UpstreamChecks, metrics: Metrics) -> None:
        self._reloader = reloader
        self._upstreams = upstreams
        self._metrics = metrics
        self._started = time.time()

    def text(self) -> str:
        """Return the JSON text of a moment."""
        upstreams = [*self._upstreams.reports(), *self._reloader.unresolved()]
        account = {
            **process_report(PROGRAM, __version__, self._started),
            "configuration": as_json(self._reloader.configuration),
            "upstreams": list(map(as_json, upstreams)),
            "dnsmasq": {"started": self._metrics.up_since, "restarts": dict(self._metrics.restarts)},
        }
        return json.dumps(account) + "\n"
