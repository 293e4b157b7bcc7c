"""What the quick runs share: several systems at the same time."""

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
