"""fairseq-syntax examples: list the recipes and quick runs, or copy them.

A copy includes the notebook and runs in any folder; recipes write to outputs/ in the current folder.

example:
  fairseq-syntax examples --copy examples
  bash examples/quickstart.sh
  bash examples/recipe.sh prepare multi30k
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from .verb import Verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--copy", metavar="DIR", help="copy everything to this new folder")


def run(args: argparse.Namespace) -> None:
    examples = examples_folder()
    if args.copy is not None:
        copy(examples, Path(args.copy))
        print(f"fairseq-syntax examples: {args.copy}: copied; begin with {args.copy}/quickstart.sh", file=sys.stderr)
        return
    for page in sorted(examples.glob("*/README.md")):
        with open(page, encoding="utf-8") as lines:
            print(f"{page.parent.name:<14}{next(lines).removeprefix('# ').strip()}")


def examples_folder() -> Path:
    """The folder of the examples: inside a package installed from a wheel, next to the package of a checkout."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "examples", package.parent / "examples"):
        if (folder / "recipe.sh").is_file():
            return folder
    raise ValueError(f"{package}: was installed without its examples; install fairseq-syntax again")


def copy(examples: Path, goal: Path) -> None:
    """Copy the examples without outputs; the new folder appears when it is complete.

    Raises OSError: the folder exists and is not empty, or cannot be made.
    """
    if goal.is_symlink() or (goal.exists() and not (goal.is_dir() and not any(goal.iterdir()))):
        raise FileExistsError(f"{goal}: exists already; name a new folder")
    goal.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{goal.name}.", dir=goal.parent) as folder:
        ignored = shutil.ignore_patterns("__pycache__", "outputs", ".*")
        Path(shutil.copytree(examples, Path(folder, "examples"), ignore=ignored)).replace(goal)


main = Verb(__doc__, add_arguments, run)
