"""`python -m healthz`."""

import sys

from healthz.app import main

sys.exit(main())
