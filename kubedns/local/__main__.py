"""`python -m kubedns.local`."""

import sys

from kubedns.local.app import main

sys.exit(main())
