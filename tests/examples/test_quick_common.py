"""What the quick runs share: several systems at the same time, which may fail or be interrupted."""

import os
import subprocess
import time

import pytest

SCRIPT = """
source examples/quick_common.sh
sleep() { command sleep 0.2; }  # between two looks at the systems
system() {
    case $1 in
        bad) exit 3 ;;
        long) command sleep 60 ;;
    esac
}
at_once system %s
echo after
"""


@pytest.mark.parametrize(
    ("systems", "status", "said"), [("long bad", 3, ""), ("bad good", 3, ""), ("good fine", 0, "after\n")]
)
def test_one_that_fails_ends_the_others(repository, tmp_path, systems, status, said):
    begin = time.monotonic()
    done = subprocess.run(
        ["bash", "-c", SCRIPT % systems],
        cwd=repository,
        env={**os.environ, "OUT": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stderr
    assert done.stdout.endswith(said) and ("after" in done.stdout) == bool(said)
    # what it has started would hold the pipe open
    assert time.monotonic() - begin < 30


@pytest.fixture
def with_programs(tmp_path):
    """Environment of a quick run with programs of our own: name -> what a shell shall do in its place."""

    def make(**programs):
        folder = tmp_path / "bin"
        folder.mkdir()
        for program, body in {"fairseq_preprocess": "exit 0", **programs}.items():
            path = folder / program.replace("_", "-")
            path.write_text(f"#!/bin/sh\n{body}\n")
            path.chmod(0o755)
        return {**os.environ, "OUT": str(tmp_path / "quick"), "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}

    return make


def test_quick_run_stops_where_a_program_fails(repository, with_programs):
    """Of programs that run at the same time, too: the script does not go on to scores."""
    done = subprocess.run(
        ["bash", repository / "examples" / "latent_tree" / "quick.sh"],
        env=with_programs(fairseq_train="echo what went wrong; exit 1"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1 and "==" not in done.stdout
    assert "failed: fairseq-train; the end of" in done.stderr and "what went wrong" in done.stderr
