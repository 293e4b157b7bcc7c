"""The quick run with latent trees, from beginning to end."""

import os
import re
import subprocess

import pytest


@pytest.mark.slow
def test_quick_run_scores_both_systems_and_looks_at_the_trees(repository, tmp_path):
    out = tmp_path / "quick"
    done = subprocess.run(
        ["bash", repository / "examples" / "sa_nmt" / "quick.sh"],
        cwd=repository,
        env={**os.environ, "OUT": str(out), "UPDATES": "30"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for system in ("nmt_lstm", "sa_nmt_shared"):
        part = done.stdout.split(f"== {system}\n")[1]
        assert re.search(r"^BLEU\|nrefs:1\|.*version:[\d.]+ = [\d.]+ ", part, re.MULTILINE)
        assert re.search(r"^all +500 +[\d.]+%", part, re.MULTILINE)
    # tables: the model beside the baselines
    assert re.search(r"^system +DA +UA +UAS$", done.stdout, re.MULTILINE)
    assert len(re.findall(r"^(?:L|R|\S*trees.conllu)(?: +[\d.]+){3}$", done.stdout, re.MULTILINE)) == 3
    assert len(re.findall(r"^all(?: +[\d.]+){9}$", done.stdout, re.MULTILINE)) == 2
    assert (out / "trees.conllu").read_text().count("\n\n") == 400
    assert "<svg" in (out / "tree.svg").read_text()
    assert (out / "heads.png").stat().st_size > 10_000


def test_quick_run_leaves_folders_of_others_alone(repository, tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    done = subprocess.run(
        ["bash", repository / "examples" / "sa_nmt" / "quick.sh"],
        env={**os.environ, "OUT": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "is not from an earlier run" in done.stderr
    assert (tmp_path / "thesis.tex").exists()
