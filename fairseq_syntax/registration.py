"""Registers tasks, models and criterions with fairseq."""

import importlib
import logging
import os
import pkgutil
import warnings

_PACKAGE = __name__.partition(".")[0]
# warnings of current hydra and torch in every command of fairseq 0.12
_HARMLESS = (
    r"\s*(hydra\.experimental\.|The version_base parameter|In 'config': Usage of|'config' is validated|The strict flag"
    r"|'pin_memory' argument is|`torch\.(cuda\.amp|jit\.script)|Support for mismatched key_padding_mask)"
)


def register() -> None:
    """Register everything with fairseq, once; later calls do nothing. Raises ImportError: fairseq cannot be imported.

    fairseq imports `tasks/` and `models/` of a user directory by itself only if the package is not loaded yet, and
    never `criterions/`; so this does it in either order. Systems are the folders of `systems`.
    """
    warnings.filterwarnings("ignore", message=_HARMLESS, append=True)  # the user's own filters win
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    importlib.import_module(f"{_PACKAGE}.compat").repair_fairseq()
    for plugin in ("training.blackout", "task"):
        importlib.import_module(f"{_PACKAGE}.{plugin}")
    for system in pkgutil.iter_modules(importlib.import_module(f"{_PACKAGE}.systems").__path__):
        importlib.import_module(f"{_PACKAGE}.systems.{system.name}")
    # importing fairseq's modules turns on their log, which its programs should decide
    root.handlers[:] = handlers
    root.setLevel(os.environ.get("LOGLEVEL", "INFO").upper() if level == logging.DEBUG else level)
