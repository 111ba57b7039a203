"""Compare the server with a fresh twin over a long random history: `make twin`.

usage: twin.py [--steps 100000] [--seed N]

Exit status 1, and seed and step, where the two disagree.
"""

import argparse
import logging
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.protocol.served import own_loop
from tests.protocol.twin.comparison import Comparison

STEPS_OF_ONE_HISTORY = 5000


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # of aliases that are no names
    begun, steps, changes, truncated, seed = time.monotonic(), 0, 0, 0, options.seed
    print(f"seed {seed}", flush=True)
    while steps < options.steps:
        with own_loop() as loop:
            history = Comparison(seed, loop)
            try:
                for _ in range(min(STEPS_OF_ONE_HISTORY, options.steps - steps)):
                    history.step()
            except AssertionError as error:
                print(f"seed {seed}: {error}", file=sys.stderr)
                return 1
        steps, changes = steps + history.steps, changes + history.changes
        truncated, seed = truncated + history.truncated, seed + 1
        print(f"{steps} steps, {time.monotonic() - begun:.0f} s", flush=True)
    print(
        f"{steps} steps, {changes} changes, {truncated} truncated answers compared: equal at every step, "
        f"in {time.monotonic() - begun:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
