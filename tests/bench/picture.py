"""The measured series as a picture: CPU time of a query, by server and kind of questions."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

from tests.bench.cluster import QUESTIONS
from tests.bench.figures import Series

_WIDTH = 0.16


def draw(series: list[Series], path: Path, caption: str) -> None:
    """Draw an SVG, lower bars being better; the same series make the same octets."""
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "bench", "font.family": "sans-serif"})
    shown = [row for row in series if row.kind in QUESTIONS]
    servers = list(dict.fromkeys(row.server for row in shown))
    canvas = Canvas(figsize=(8, 4), layout="constrained")
    axes = canvas.subplots()
    for place, server in enumerate(servers):
        values = [
            next(row.cpu for row in shown if (row.server, row.kind) == (server, kind)) for kind in QUESTIONS
        ]
        middle = place - (len(servers) - 1) / 2
        label = "C echo" if server == "echo" else server
        bars = axes.bar([x + middle * _WIDTH for x in range(len(QUESTIONS))], values, _WIDTH, label=label)
        axes.bar_label(bars, fmt="%.1f", fontsize=7)
    axes.set_xticks(range(len(QUESTIONS)), QUESTIONS)
    axes.set_ylabel("CPU time of a query, µs")
    axes.set_title("One core, 10,000 Services, 100,000 endpoints: less is better", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=len(servers), fontsize=8)
    canvas.supxlabel(caption, fontsize=7)
    canvas.savefig(path, format="svg", metadata={"Date": None})
