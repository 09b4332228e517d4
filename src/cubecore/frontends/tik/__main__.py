"""``python -m cubecore.frontends.tik program.py``: run a TIK program as it is."""

import sys

from cubecore.frontends.tik.host.program import main

sys.exit(main(sys.argv[1:]))
