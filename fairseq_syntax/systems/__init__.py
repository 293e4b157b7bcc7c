"""The systems, a folder each: everything that one paper brings, and nothing else.

Importing one registers all with fairseq, and what a folder imports in its `__init__.py` is registered: a new system is
a new folder.
"""

from ..registration import register

register()
