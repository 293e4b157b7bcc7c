"""Programs where fairseq is not installed."""

import subprocess
import sys

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


def test_without_fairseq_there_is_one_message(repository):
    command = [sys.executable, "-c", HIDE, "average", "--input", "README.md", "--output", "b.pt"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    lines = [line for line in done.stderr.splitlines() if "Warning" not in line]
    assert len(lines) == 1 and lines[0].startswith("fairseq-syntax average: needs fairseq, which is not installed;")
