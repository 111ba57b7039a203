"""No question about a very large Service costs much more than the message that answers it."""

import pytest

from tests.protocol.attack.dearest import FEW_TYPES, D, Kind, costs, kinds, per_kib, table
from tests.protocol.served import own_loop

PLAIN = Kind(f"web-0.ns-0.svc.{D}", "A", tcp=False, payload=1232)
MOST_TIMES = 1000
"""How much more than a plain question any other may take; before there was a bound it was 20,000."""


@pytest.mark.timeout(180)
def test_every_kind_of_question_is_bounded_by_its_message_and_answered(capsys):
    asked = [PLAIN, *(kind for kind in kinds() if kind.tcp or (kind.payload and kind.rdtype in FEW_TYPES))]
    with own_loop() as loop:
        found = list(costs(loop, asked))
    with capsys.disabled():
        print("\n" + table(found, most=3))
    plain = found[0].next
    for cost in found:
        name = cost.kind.name.lower()
        assert per_kib(cost) < MOST_TIMES * plain, f"{cost.kind}: {cost.next * 1000:.2f} ms"
        assert cost.reply.rcode != "REFUSED" or "*" in name, cost.kind
        if cost.kind.rdtype == "A" and name in (f"huge.default.svc.{D}", f"_p0._tcp.pods.default.svc.{D}"):
            assert len(cost.reply.answer) > (4000 if cost.kind.tcp else 60)
            assert cost.reply.truncated
        if name.startswith(("no.", "x.")) and "*" not in name:
            assert cost.reply.rcode == "NXDOMAIN", cost.kind
