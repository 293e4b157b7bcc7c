"""What recipes would run: dry runs, each computed once, and the committed ones in tests/golden/recipes.

`python tests/contract/recipes.py` writes the committed ones anew, after a change that is meant.
"""

import atexit
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples"
GOLDEN = REPOSITORY / "tests" / "golden" / "recipes"
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


@cache
def empty_folder() -> Path:
    """Where scripts are run: what the reader has in outputs/ is not there, and a dry run leaves nothing."""
    folder, owner = tempfile.mkdtemp(prefix="recipes"), os.getpid()
    # a fork of this process ends, too
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(folder))
    return Path(folder)


def shell(*words: str, timeout: float | None = 120, **variables: str) -> subprocess.CompletedProcess:
    """A script of examples/ with its arguments, in an environment that holds nothing else."""
    inherited = {name: os.environ[name] for name in ("HOME", "PYTHONPATH") if name in os.environ}
    environment = {"PATH": PATH, **inherited, **variables}
    return subprocess.run(
        ["bash", str(EXAMPLES / words[0]), *words[1:]],
        cwd=empty_folder(),
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


@cache
def _dry_run(words: tuple[str, ...], variables: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    done = shell(*words, **{**dict(variables), "DRY_RUN": "1"})
    assert done.returncode == 0, done.stderr[-1000:]
    lines = [line[2:].rstrip() for line in done.stderr.splitlines() if line.startswith("+ ")]
    return tuple(line.replace(f"{REPOSITORY}/", "") for line in lines)


def dry_run(*words: str, **variables: str) -> list[str]:
    """The commands that a script of examples/ would run, one a line."""
    return list(_dry_run(words, tuple(sorted(variables.items()))))


def named(words: list[str]) -> list[str]:
    """A command line with the verb of our program in its name: "fairseq-syntax parse"."""
    return [" ".join(words[:2]), *words[2:]] if words[:1] == ["fairseq-syntax"] else words


def recipe(verb: str, name: str, *arguments: str, **variables: str) -> list[list[str]]:
    """The commands of a step, as lists of words, without redirections."""
    found = [named(shlex.split(line)) for line in dry_run("recipe.sh", verb, name, *arguments, **variables)]
    return [words[: next((i for i, word in enumerate(words) if word in ("<", ">")), len(words))] for words in found]


def ours(commands: list[list[str]]) -> list[list[str]]:
    """Those of them that are programs of fairseq and of this package."""
    return [command for command in commands if command[0].startswith("fairseq-")]


def golden(path: Path) -> dict[str, list[str]]:
    """Command line -> the commands that it would run."""
    blocks: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("$ "):
            found = blocks.setdefault(line[2:], [])
        elif line:
            found.append(line)
    return blocks


def now(line: str) -> list[str]:
    """What a command line of a golden file would run now; systems that train at the same time are in any order."""
    words = shlex.split(line)
    start = words.index("bash")
    variables = dict(word.split("=", 1) for word in words[:start])
    commands = dry_run(words[start + 1].removeprefix("examples/"), *words[start + 2 :], **variables)
    return commands if "recipe.sh" in line else sorted(commands)


if __name__ == "__main__":
    for file in sorted(GOLDEN.glob("*.txt")):
        text = "\n".join(f"$ {line}\n" + "".join(f"{command}\n" for command in now(line)) for line in golden(file))
        file.write_text(text, encoding="utf-8")
