"""The systems, one folder for each paper.

Importing one registers all with fairseq, and what a folder imports in its `__init__.py` is registered: a new system is
a new folder.
"""

from ..registration import register

register()
