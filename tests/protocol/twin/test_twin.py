"""No answer that was kept is ever out of date (the long run is `make twin`)."""

import pytest

from tests.protocol.served import own_loop
from tests.protocol.twin.comparison import Comparison

STEPS = 1250


@pytest.mark.parametrize("seed", range(4))
def test_warm_server_agrees_with_a_fresh_one_at_every_step(seed):
    with own_loop() as loop:
        comparison = Comparison(seed, loop)
        for _ in range(STEPS):
            comparison.step()
    assert comparison.changes > STEPS // 5
    assert comparison.truncated > 0
