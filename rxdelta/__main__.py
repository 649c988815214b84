"""`python -m rxdelta`, the same as the command `rxdelta`."""

import sys

from rxdelta.cli import main

if __name__ == "__main__":
    sys.exit(main())
