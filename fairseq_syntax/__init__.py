"""fairseq-syntax: syntax for fairseq's translation models.

Importing the package, or naming it with `--user-dir`, registers tasks, models and criterions with fairseq: at once if
fairseq is loaded, and otherwise as soon as it is. The algorithms in `fairseq_syntax.trees` also work where fairseq is
not installed.
"""

from .registration import register, register_with_fairseq
from .version import __version__

__all__ = ["__version__", "register"]

register_with_fairseq()
