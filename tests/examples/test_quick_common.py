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


def test_quick_run_stops_where_a_program_fails(repository, tmp_path):
    """Of programs that run at the same time, too: the script does not go on to scores."""
    for program, body in {"preprocess": "exit 0", "train": "echo what went wrong; exit 1"}.items():
        (tmp_path / f"fairseq-{program}").write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / f"fairseq-{program}").chmod(0o755)
    done = subprocess.run(
        ["bash", repository / "examples" / "latent_tree" / "quick.sh"],
        env={**os.environ, "OUT": str(tmp_path / "quick"), "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1 and "==" not in done.stdout
    assert "failed: fairseq-train; the end of" in done.stderr and "what went wrong" in done.stderr
