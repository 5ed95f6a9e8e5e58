"""python -m kdsl: the command `kdsl`."""

import sys

from kdsl.cli import main

if __name__ == "__main__":
    sys.exit(main())
