"""What the quick runs share: several systems at the same time, which may fail or be interrupted."""

import os
import signal
import subprocess
import time
from pathlib import Path

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


def test_interrupted_quick_run_leaves_no_training_behind(repository, with_programs, tmp_path):
    running = tmp_path / "running"
    running.mkdir()
    # a program becomes `sleep`, under the number that names its file
    process = subprocess.Popen(
        ["bash", repository / "examples" / "latent_tree" / "quick.sh"],
        env=with_programs(fairseq_train=f"touch {running}/$$; exec sleep 300"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # a shell that was started with the signal ignored could not be interrupted
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    wait_until(lambda: len(list(running.iterdir())) == 2)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=60) == -signal.SIGINT
    wait_until(lambda: not any(is_running(int(path.name)) for path in running.iterdir()))


def wait_until(holds, seconds=60):
    """Returns when `holds()`; fails when it does not in time."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def is_running(process: int) -> bool:
    """Whether there is a process of this number, and it is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
