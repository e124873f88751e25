"""`python -m ornstein`: the program `ornstein`, where it is not on the path."""

import sys

from ornstein_program import main

if __name__ == "__main__":
    sys.exit(main())
