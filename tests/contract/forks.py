"""Programs that import fairseq and the package, each in a fork of one process that has loaded what both need.

    python forks.py '[["import fairseq_syntax", {"LOGLEVEL": ""}], …]'

prints [exit status, stdout, stderr] of each as JSON. A process of its own for each would load PyTorch again.
"""

import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
LOADED = ("torch", "numpy", "hydra", "omegaconf", "sacrebleu", "sklearn.metrics", "tensorboardX")


def run(*programs: str, **environment: str) -> list[tuple[int, str, str]]:
    """Exit status, stdout and stderr of each program, with these variables set."""
    given = json.dumps([[program, environment] for program in programs])
    command = [sys.executable, __file__, given]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=True)
    return [tuple(found) for found in json.loads(done.stdout)]


def _fork(program: str, environment: dict[str, str]) -> list:
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        child = os.fork()
        if not child:
            os.dup2(output.fileno(), 1)
            os.dup2(errors.fileno(), 2)
            os.environ.update(environment)
            status = 0
            try:
                exec(program, {"__name__": "__main__"})
            except BaseException:
                traceback.print_exc()
                status = 1
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        errors.seek(0)
        return [status, output.read(), errors.read()]


if __name__ == "__main__":
    for name in LOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    assert "fairseq" not in sys.modules
    print(json.dumps([_fork(*given) for given in json.loads(sys.argv[1])]))
