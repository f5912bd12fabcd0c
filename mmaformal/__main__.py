"""`python -m mmaformal` is `mmaformal`."""

import sys

from mmaformal.cli import main

sys.exit(main())
