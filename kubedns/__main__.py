"""`python -m kubedns` runs the record server."""

import sys

from kubedns.app import main

sys.exit(main())
