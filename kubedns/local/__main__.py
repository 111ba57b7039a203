"""`python -m kubedns.local`."""

import sys

try:
    from kubedns.local.app import main
except ModuleNotFoundError as error:
    sys.exit(f"python -m kubedns.local: {error.name} is not installed; run: make setup")

sys.exit(main())
