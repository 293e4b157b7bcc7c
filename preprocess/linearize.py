"""fairseq-syntax linearize from a checkout, installed or not."""

import sys
from pathlib import Path

# the checkout in place of this folder, whose files have the names of other people's modules
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from fairseq_syntax.cli.program import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(["linearize", *sys.argv[1:]]))
