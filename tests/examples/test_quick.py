"""`make demo` and the quick runs, from beginning to end, and what they leave alone."""

import re

import pytest
from contract.recipes import shell


def quick_run(script, out, systems, updates=30, agreement=True):
    """What a quick run of few updates prints, after the scores of every system."""
    done = shell(script, timeout=None, OUT=str(out), UPDATES=str(updates))
    assert done.returncode == 0, done.stderr[-2000:]
    for system in systems:
        part = done.stdout.split(f"== {system}\n")[1]
        assert re.search(r"^BLEU\|nrefs:1\|.*version:[\d.]+ = [\d.]+ ", part, re.MULTILINE)
        assert not agreement or re.search(r"^all +500 +[\d.]+%", part, re.MULTILINE)
    return done.stdout


@pytest.mark.slow
def test_demo_scores_both_systems_and_draws(tmp_path):
    printed = quick_run("quickstart.sh", tmp_path / "demo", ("transformer", "pascal"), updates=40)
    compared, following = printed.splitlines()[-2:]
    bleu = re.findall(r"version:[\d.]+ = ([\d.]+) ", printed)
    right = re.findall(r"^all +500 +([\d.]+)%", printed, re.MULTILINE)
    assert compared.startswith(
        f"PASCAL has {bleu[1]} BLEU and {right[1]} % of the verbs right, the Transformer {bleu[0]} and {right[0]} %,"
    )
    assert "fairseq-syntax experiment" in following
    assert (tmp_path / "demo" / "attention.png").stat().st_size > 10_000


@pytest.mark.parametrize("script", ["quickstart.sh", "latent_tree/quick.sh"])
@pytest.mark.parametrize("there", [["thesis.tex"], ["quick.log", "demo.log", "checkpoints/best.pt"]])
def test_folders_of_others_and_checkpoints_of_recipes_are_left_alone(tmp_path, script, there):
    for name in there:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    done = shell(script, OUT=str(tmp_path))
    assert done.returncode == 1 and "is not from an earlier run" in done.stderr
    assert all((tmp_path / name).exists() for name in there)
