"""What stays of a run: a page in Markdown, of which README.md shows the tables.

In: the series and the figures.  Out: text with the date and the machine, since figures mean nothing
without them.
"""

from collections.abc import Sequence

from tests.bench.cluster import QUESTIONS
from tests.bench.figures import Figure, Measured, Series, markdown


def speed_page(measured: Measured, caption: str) -> str:
    """Return the page of `make bench`."""
    parts = [
        f"Measured {caption}.",
        "## At the port that clients ask",
        pod_table(measured.pod),
        "Over 50 TCP connections:",
        streams_table(measured.streams),
        "## Each server alone",
        servers_table(measured.alone),
        others_table(measured.alone),
        targets_table(measured.figures),
    ]
    return "\n\n".join(parts) + "\n"


def pod_table(series: Sequence[Series]) -> str:
    """Return CPU time of the whole pod by wiring and kind, and how much of the echo's that is."""
    shown = {(row.server, row.kind): row for row in series}
    kinds = dict.fromkeys(kind for _, kind in shown)
    servers = dict.fromkeys(server for server, _ in shown)

    def cell(server: str, kind: str) -> str:
        row = shown.get((server, kind))
        return f"{row.cpu / shown['echo', kind].cpu:.1f} ({row.cpu:.1f})" if row else ""

    rows = [[server, *(cell(server, kind) for kind in kinds)] for server in servers]
    return markdown(("one core: x echo (CPU us/query)", *kinds), rows)


def streams_table(series: Sequence[Series]) -> str:
    """Return queries per second over TCP, and those that were lost."""
    rows = [(row.server, row.kind, _cell(row), str(row.lost)) for row in series]
    return markdown(("over TCP", "questions", "qps (CPU us/query)", "lost"), rows)


def servers_table(series: Sequence[Series]) -> str:
    """Return queries per second and CPU time by server and kind of questions."""
    shown = {(row.server, row.kind): row for row in series if row.kind in QUESTIONS}
    servers = dict.fromkeys(server for server, _ in shown)
    rows = [[server, *(_cell(shown[server, kind]) for kind in QUESTIONS)] for server in servers]
    return markdown(("one core: qps (CPU us/query)", *QUESTIONS), rows)


def others_table(series: Sequence[Series]) -> str:
    """Return the other series, one a row."""
    rows = [(row.server, row.kind, _cell(row), str(row.lost)) for row in series if row.kind not in QUESTIONS]
    return markdown(("servers", "questions", "qps (CPU us/query)", "lost"), rows)


def targets_table(figures: Sequence[Figure]) -> str:
    """Return what was to be reached, and what was measured."""
    return markdown(("to reach", "measured", "target", "met"), [figure.cells() for figure in figures])


def _cell(row: Series) -> str:
    return f"{row.qps / 1000:.1f}k ({row.cpu:.1f})"
