"""What was measured, and what was to be reached, as rows of a table.  Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from tests.bench.dnsperf import Load


@dataclass(slots=True)
class Series:
    """The runs of one server on one kind of questions."""

    server: str
    kind: str
    runs: list[Load] = field(default_factory=list)

    @property
    def qps(self) -> float:
        """Queries per second, the median."""
        return median(run.qps for run in self.runs)

    @property
    def cpu(self) -> float:
        """CPU time of a query in us, the median."""
        return median(run.cpu for run in self.runs)

    @property
    def lost(self) -> int:
        """Questions lost in all runs."""
        return sum(run.lost for run in self.runs)


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing to reach: what it is, what was measured and the target with their unit, and whether it is met."""

    what: str
    measured: float
    target: float
    unit: str
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the target is reached."""
        return self.measured >= self.target if self.at_least else self.measured <= self.target

    def cells(self) -> tuple[str, str, str, str]:
        """Return the row of a table."""
        sign = ">=" if self.at_least else "<="
        return (
            self.what,
            f"{_number(self.measured)} {self.unit}",
            f"{sign} {_number(self.target)} {self.unit}",
            "yes" if self.met else "NO",
        )


@dataclass(frozen=True, slots=True)
class Measured:
    """All that came of a run: `pod` and `streams` at the clients' port, `alone` of single servers."""

    pod: list[Series]
    streams: list[Series]
    alone: list[Series]
    figures: list[Figure]


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.2f}"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table, which reads well as it stands too."""
    table = [head, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in table
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
