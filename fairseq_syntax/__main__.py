"""`python -m fairseq_syntax`: the program."""

import sys

from .cli.program import main

if __name__ == "__main__":
    sys.exit(main())
