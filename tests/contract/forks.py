"""Programs that import fairseq and the package, each in a fork of one process that has loaded what both need.

    python forks.py MODULE,… "import fairseq_syntax" …

prints [exit status, stdout, stderr] of each as JSON, where the modules are loaded already. Processes that are not forks
would each load PyTorch.
"""

import contextlib
import importlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# what fairseq imports
LOADED = ("torch", "numpy", "hydra", "omegaconf", "sacrebleu", "sklearn.metrics", "tensorboardX")


_COMMAND = """
import importlib.metadata, os, runpy, sys
os.chdir({folder!r})
sys.path.insert(0, "")
sys.argv = {words!r}
if sys.argv[:2] == ["python", "-m"]:
    del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    (script,) = importlib.metadata.entry_points(group="console_scripts", name=sys.argv[0])
    sys.exit(script.load()())
"""


def command(line: str, folder: Path) -> str:
    """The program that a command line starts in a folder: a module, or the script of a package."""
    return _COMMAND.format(words=shlex.split(line), folder=str(folder))


def run(*programs: str, loaded: Sequence[str] = LOADED) -> list[tuple[int, str, str]]:
    """Exit status, stdout and stderr of each program, where these modules are loaded already."""
    given = [sys.executable, __file__, ",".join(loaded), *programs]
    done = subprocess.run(given, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=True)
    return [tuple(found) for found in json.loads(done.stdout.splitlines()[-1])]


def _fork(program: str) -> list:
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        sys.stdout.flush()
        child = os.fork()
        if not child:
            os.dup2(output.fileno(), 1)
            os.dup2(errors.fileno(), 2)
            try:
                exec(program, {"__name__": "__main__"})
                status = 0
            except SystemExit as stopped:
                status = stopped.code or 0
            except BaseException:
                status = traceback.format_exc()
            if isinstance(status, str):
                print(status, file=sys.stderr)
                status = 1
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        errors.seek(0)
        return [status, output.read(), errors.read()]


if __name__ == "__main__":
    for name in sys.argv[1].split(","):
        with contextlib.suppress(ImportError):  # what fairseq does without
            importlib.import_module(name)
    print(json.dumps([_fork(program) for program in sys.argv[2:]]))
