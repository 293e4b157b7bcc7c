"""The programs. `preprocess/*.py` and the installed commands call the `main` functions here."""
