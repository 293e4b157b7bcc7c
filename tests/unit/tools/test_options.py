"""fairseq-syntax options: what an architecture, its task and its criterion can be told."""

import programs
import pytest

from fairseq_syntax.tools import options
from fairseq_syntax.tools.options import architectures

shown = programs.runner(options)


@pytest.mark.parametrize(
    ("arch", "task", "criterion", "own"),
    [
        ("pascal_transformer", "syntax_translation", None, "--pascal-heads"),
        ("latent_tree_rnng", "tree_translation", "reinforce_tree", "--rnng-preset"),
    ],
)
def test_task_and_criterion_are_those_of_the_system(shown, arch, task, criterion, own):
    text = shown(arch)
    titles = [line.rstrip(":") for line in text.splitlines() if line.startswith("--")]
    assert titles == [f"--arch {arch}", f"--task {task}", *([f"--criterion {criterion}"] if criterion else [])]
    assert own in text


def test_others_can_be_named(shown):
    text = shown("lisa_transformer", "--criterion", "label_smoothed_cross_entropy", "--task", "translation")
    assert "--criterion label_smoothed_cross_entropy:" in text and "--task translation:" in text


def test_defaults_are_those_of_the_preset(shown):
    """Of the named architecture, not of its family."""
    size, tiny = (" ".join(shown(name).split("--task")[0].split()[2:]) for name in ("nmt_lstm", "nmt_lstm_tiny"))
    assert size != tiny


def test_all_architectures_can_be_described(shown):
    assert shown().split() == architectures()
    for arch in architectures():
        assert f"--arch {arch}:" in shown(arch)
