"""The server that has been asked all along, against one made from the objects of this moment, full path only.

Steps are changes of the cluster, of the federations and of the hour, and questions of every kind;
each step ends with a question to both.  The answers must be equal as sets, with equal rcode and
flags: nothing that the fast path kept may outlive what it was made from.
"""

import asyncio
from dataclasses import dataclass
from random import Random

from kubedns.objects import Topology
from tests.protocol.population import FEDERATIONS, OUTSIDE, PLACE, Population, question_name, question_types
from tests.protocol.reading import ask, read
from tests.protocol.served import Served

PAYLOADS = (None, None, 0, 512, 1232, 4096, 65535)
STRICT_EVERY = 8
MOST_REMEMBERED = 300


@dataclass(frozen=True)
class Question:
    """A query and how it is sent."""

    query: bytes
    tcp: bool


class Comparison:
    """A history; `step` goes one further and raises AssertionError where the two disagree."""

    def __init__(self, seed: int, loop: asyncio.AbstractEventLoop) -> None:
        self._rng = Random(seed)
        self._loop = loop
        self._population = Population()
        self._zone = self._population.fresh_zone()
        self._hour = 0
        self._warm = Served(self._zone, loop, outside=OUTSIDE)
        self._federations: dict[str, str] = {}
        self._topology: Topology | None = None
        self._asked: list[Question] = []
        self.steps = 0
        self.truncated = 0
        self.changes = 0

    def step(self) -> None:
        self.steps += 1
        if self._rng.random() < 0.3:
            self.changes += 1
            self._change()
        question = self._question()
        self._compare(question)

    def _change(self) -> None:
        rng, kind = self._rng, self._rng.random()
        if kind < 0.45:
            self._zone.services.apply(self._population.change_service(rng))
        elif kind < 0.9:
            self._zone.slices.apply(self._population.change_slice(rng))
        elif kind < 0.95:
            self._federations = FEDERATIONS if rng.random() < 0.5 else {}
            self._topology = Topology(*PLACE) if rng.random() < 0.7 else None
            self._zone.configure_federations(self._federations, self._topology)
        else:
            self._hour += rng.randrange(3)
            self._warm.server.set_clock(self._hour * 3600)

    def _question(self) -> Question:
        rng = self._rng
        if self._asked and rng.random() < 0.7:
            return rng.choice(self._asked)
        name = question_name(rng, self._population)
        if rng.random() < 0.15:
            name = "".join(rng.choice((letter.upper(), letter)) for letter in name)
        payload = rng.choice(PAYLOADS)
        query = ask(
            name,
            question_types(rng),
            payload=payload,
            do=payload is not None and rng.random() < 0.3,
            rd=rng.random() < 0.8,
            message_id=rng.randrange(65536),
        )
        question = Question(query, rng.random() < 0.2)
        self._asked.append(question)
        if len(self._asked) > MOST_REMEMBERED:
            self._asked.pop(rng.randrange(MOST_REMEMBERED))
        return question

    def _compare(self, question: Question) -> None:
        query, tcp = question.query, question.tcp
        twin = self._twin()
        said, wanted = self._warm.ask(query, tcp=tcp), twin.ask(query, tcp=tcp)
        if said == wanted and self.steps % STRICT_EVERY:
            return
        ours, theirs = read(query, said, tcp=tcp), read(query, wanted, tcp=tcp)
        where = f"step {self.steps}: {ours.message.question[0]}"
        assert ours.rcode == theirs.rcode, f"{where}: {ours.rcode}, not {theirs.rcode}"
        assert ours.flags == theirs.flags, f"{where}: {ours.flags}, not {theirs.flags}"
        assert ours.authority == theirs.authority, f"{where}: {ours.authority}, not {theirs.authority}"
        if ours.truncated:
            self.truncated += 1
            whole = read(query, twin.ask(query, tcp=True), tcp=True)
            assert set(ours.answer) <= set(whole.answer), f"{where}: foreign records in a cut answer"
            assert len(ours.answer) < len(whole.answer), f"{where}: cut without need"
            assert not ours.additional
        else:
            assert ours.answer == theirs.answer, f"{where}: {ours.answer}, not {theirs.answer}"
            assert ours.additional == theirs.additional, (
                f"{where}: {ours.additional}, not {theirs.additional}"
            )

    def _twin(self) -> Served:
        zone = self._population.fresh_zone()
        zone.configure_federations(self._federations, self._topology)
        return Served(zone, self._loop, outside=OUTSIDE, clock=self._hour * 3600, full=True)
