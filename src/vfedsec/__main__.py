"""`python -m vfedsec`."""

import sys

from vfedsec.cli import main

if __name__ == "__main__":
    sys.exit(main())
