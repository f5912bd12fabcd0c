"""`python -m mmaformal.cli` is `mmaformal`."""

import sys

from mmaformal.cli import main

sys.exit(main())
