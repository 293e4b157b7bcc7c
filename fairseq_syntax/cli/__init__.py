"""The programs. `preprocess/*.py` and the installed commands call the `main` functions here."""

import importlib.util
import sys
from pathlib import Path


def _missing_fairseq(kind, error, traceback) -> None:
    """One message instead of a traceback where a program is started without fairseq, be it for its `--help`."""
    if issubclass(kind, ModuleNotFoundError) and (error.name or "").split(".")[0] == "fairseq":
        print(
            f"{Path(sys.argv[0]).name}: needs fairseq, which is not installed; "
            "pip install --no-build-isolation fairseq-fixed==0.12.3.1",
            file=sys.stderr,
        )
    else:
        sys.__excepthook__(kind, error, traceback)


if importlib.util.find_spec("fairseq") is None:
    sys.excepthook = _missing_fairseq
