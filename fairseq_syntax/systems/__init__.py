"""The systems, a folder each: everything that one paper brings, and nothing else.

`import fairseq_syntax` imports every folder here, and what a folder imports in its `__init__.py` is registered with
fairseq: a new system is a new folder. A folder `parsers` in it holds its parsers of raw text, see `data.parsers`.
"""

import pkgutil
from pathlib import Path

from ..data.parsers import add_parsers

for _system in pkgutil.iter_modules(__path__):
    _folder = Path(__path__[0], _system.name, "parsers")
    if _folder.is_dir():
        add_parsers(f"{__name__}.{_system.name}.parsers", [str(_folder)])
