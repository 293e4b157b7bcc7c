"""The systems, a folder each: everything that one paper brings, and nothing else.

`import fairseq_syntax` imports every folder here, and what a folder imports in its `__init__.py` is registered with
fairseq: a new system is a new folder.
"""

from ..data.parsers import MODULES

MODULES["checkpoint"] = f"{__name__}.parser.parse"
