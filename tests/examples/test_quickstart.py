"""`make demo` from beginning to end."""

import os
import re
import subprocess

import pytest


@pytest.mark.slow
def test_quickstart_scores_both_systems_and_draws(repository, tmp_path):
    done = subprocess.run(
        ["bash", repository / "examples" / "quickstart.sh"],
        cwd=repository,
        env={**os.environ, "OUT": str(tmp_path / "demo"), "UPDATES": "40"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for system in ("transformer", "pascal"):
        part = done.stdout.split(f"== {system}\n")[1]
        assert re.search(r"^BLEU\|nrefs:1\|.*version:[\d.]+ = [\d.]+ ", part, re.MULTILINE)
        assert re.search(r"^all +500 +[\d.]+%", part, re.MULTILINE)
    assert (tmp_path / "demo" / "attention.png").stat().st_size > 10_000
