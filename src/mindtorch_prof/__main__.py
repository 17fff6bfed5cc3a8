"""`python -m mindtorch_prof`: the command line."""

import sys

from . import main

sys.exit(main())
