"""Runs the nanny as `python -m nanny`."""

import sys

from nanny.app import main

sys.exit(main())
