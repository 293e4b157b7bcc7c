"""The quick run with syntax-directed attention, from beginning to end."""

import os
import re
import subprocess

import pytest


@pytest.mark.slow
def test_quick_run_scores_and_compares_all_systems(repository, tmp_path):
    out = tmp_path / "quick"
    done = subprocess.run(
        ["bash", repository / "examples" / "sdatt" / "quick.sh"],
        cwd=repository,
        env={**os.environ, "OUT": str(out), "UPDATES": "30"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for system in ("global_att", "sdatt", "global_plus_sdatt"):
        part = done.stdout.split(f"== {system}\n")[1]
        assert re.search(r"^BLEU\|nrefs:1\|.*version:[\d.]+ = [\d.]+ ", part, re.MULTILINE)
        assert re.search(r"^all +500 +[\d.]+%", part, re.MULTILINE)
    # tables of the comparison: the baseline, then the others with their difference to it; and by length
    row = r"^(\w+) +[\d.]+ +(?:-|-?[\d.]+) +[\d.]+ +[\d.]+(?: +(?:-|[\d.E+-]+)){4}$"
    rows = re.findall(row, done.stdout, re.MULTILINE)
    assert rows == ["global_att", "sdatt", "global_plus_sdatt"]
    buckets = re.findall(r"^>?\d+ +(\d+) +[\d.]+ ", done.stdout, re.MULTILINE)
    assert sum(map(int, buckets)) == 400
    assert "<svg" in (out / "lengths.svg").read_text()


def test_quick_run_leaves_folders_of_others_alone(repository, tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    done = subprocess.run(
        ["bash", repository / "examples" / "sdatt" / "quick.sh"],
        env={**os.environ, "OUT": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "is not from an earlier run" in done.stderr
    assert (tmp_path / "thesis.tex").exists()


def test_quick_run_stops_where_a_program_fails(repository, tmp_path):
    """Of programs that run at the same time, too: the script does not go on to scores."""
    broken = tmp_path / "bin"
    broken.mkdir()
    for program in ("fairseq-train", "fairseq-syntax-preprocess"):
        (broken / program).write_text(f"#!/bin/sh\necho what went wrong\nexit {int(program == 'fairseq-train')}\n")
        (broken / program).chmod(0o755)
    done = subprocess.run(
        ["bash", repository / "examples" / "sdatt" / "quick.sh"],
        env={**os.environ, "OUT": str(tmp_path / "quick"), "PATH": f"{broken}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1 and "==" not in done.stdout
    assert "failed: fairseq-train; the end of" in done.stderr and "what went wrong" in done.stderr
