"""fairseq-syntax: syntax for fairseq's translation models.

Importing the package after fairseq, or naming it with `--user-dir`, registers tasks, models and criterions with
fairseq, as does importing a system, or `register()`. The algorithms in `fairseq_syntax.trees` also work where fairseq
is not installed.
"""

import sys

from .registration import register
from .version import __version__

__all__ = ["__version__", "register"]

if "fairseq" in sys.modules:
    register()
