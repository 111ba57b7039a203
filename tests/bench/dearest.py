"""`make bench-dearest`: the questions that take most CPU time, by name.  What is measured needs no network."""

import sys

from kubedns.process.garbage import defer_full_collections
from tests.protocol.attack.dearest import costs, kinds, table
from tests.protocol.served import own_loop


def main() -> int:
    """Print the table."""
    defer_full_collections()
    with own_loop() as loop:
        print(table(list(costs(loop, list(kinds())))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
