"""Programs where fairseq is not installed."""

import subprocess
import sys

import pytest

HIDE = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "fairseq":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "fairseq" else find(name, *rest)
sys.meta_path.insert(0, Hidden())
from fairseq_syntax.cli.program import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("command", ["preprocess --help", "average --input a.pt --output b.pt"])
def test_without_fairseq_there_is_one_message(command, repository):
    program, *arguments = command.split()
    done = subprocess.run(
        [sys.executable, "-c", HIDE, program, *arguments], cwd=repository, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if "Warning" not in line]
    assert len(lines) == 1 and lines[0].startswith(f"fairseq-syntax {program}: needs fairseq, which is not installed;")
