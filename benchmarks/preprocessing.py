"""Preprocessing: adding the arrays against fairseq-preprocess."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from timing import report, side_by_side

ROOT = Path(__file__).resolve().parent.parent


def run(quick: bool) -> None:
    """`--only-syntax` against fairseq-preprocess on the same text, as commands, start-up included."""
    sentences, rounds, warm_up = (200, 1, 0) if quick else (20000, 5, 1)
    folder = Path(tempfile.mkdtemp())
    try:
        subprocess.run(
            [
                sys.executable, ROOT / "examples/agreement/generate.py", "--output", folder / "corpus",
                "--train", str(sentences),
            ],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        common = ["--source-lang", "en", "--target-lang", "de", "--trainpref", folder / "corpus/train"]
        common += ["--destdir", folder / "data"]

        def stock():
            shutil.rmtree(folder / "data", ignore_errors=True)
            command("fairseq_cli.preprocess", *common)

        def added():  # to what fairseq-preprocess made last
            command("fairseq_syntax.tools.preprocess", "--only-syntax", "--overwrite", *common)

        seconds = side_by_side({"fairseq-preprocess": stock, "adding the arrays": added}, rounds, warm_up)
        report(f"preprocessing {sentences} sentences", seconds, "fairseq-preprocess")
    finally:
        shutil.rmtree(folder)


def command(module: str, *arguments) -> None:
    """Run a program's module quietly; fail loudly."""
    code = f"from {module} import *; import {module} as m; (m.cli_main if hasattr(m, 'cli_main') else m.main)()"
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
