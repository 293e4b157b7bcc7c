"""Latent trees through fairseq's commands: text in characters, and translations with trees."""

import re
from pathlib import Path

import pytest
from golden import families
from integration import commands
from integration.commands import hypotheses, records

from fairseq_syntax.systems.latent_tree.tree_files import from_brackets, read_tree_file
from fairseq_syntax.trees.characters import to_characters, to_text

NAME = "latent_tree_rnng"
TASK = ["--task", "tree_translation"]
DECODING = [
    "--cpu",
    "--beam",
    "1",
    "--max-len-a",
    "0",
    "--max-len-b",
    "30",
    "--bpe",
    "syntax_char",
    "--batch-size",
    "4",
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """Data in characters, their text, and a checkpoint."""
    return families.copies(tmp_path_factory.mktemp("latent_tree"))


def test_training_reports_and_keeps_the_best(folders, tmp_path):
    data, options = families.FAMILIES[NAME]
    bleu = ["--eval-bleu", "--eval-bleu-args", '{"beam": 1, "max_len_a": 0, "max_len_b": 30}']
    best = ["--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric"]
    small = ["--cpu", "--optimizer", "adam", "--lr", "1e-2", "--batch-size", "5", "--required-batch-size-multiple", "1"]
    limits = ["--max-epoch", "1", "--save-interval-updates", "2", "--log-format", "json", "--save-dir", tmp_path]
    given = [folders[data], "--arch", NAME, *options, *small, "--num-workers", "0", *bleu, *best, *limits]
    log = records(commands.run("fairseq-train", *given))
    validated = [record for record in log if "valid_bleu" in record]
    assert len(validated) == 3 and (tmp_path / "checkpoint_best.pt").exists()
    for record in validated:
        assert 0 <= float(record["valid_bleu"]) < 100 and float(record["valid_loss"]) > 0
    # 24 sentences by 5 are 5 updates: no sentence is dropped
    assert max(int(record["train_num_updates"]) for record in log if "train_num_updates" in record) == 5


def lines_of(output: str, label: str) -> dict[int, str]:
    """Number -> last field of the lines that start with a label."""
    return {int(n): value for n, value in re.findall(rf"^{label}-(\d+)\t(?:-?[\d.]+\t)?(.*)$", output, re.MULTILINE)}


def test_binarized_and_raw_text_are_translated_alike(folders, tmp_path):
    """fairseq-generate and fairseq-interactive, in buffers; neither padding nor neighbours make a difference.

    Yields of the trees are the sentences.
    """
    data, checkpoint = folders["characters"], folders["checkpoints"] / f"{NAME}.pt"
    given = [*TASK, "--path", checkpoint, *DECODING, "--rnng-tree-output"]
    output = commands.run("fairseq-generate", data, *given, "--scoring", "sacrebleu")
    sources = [*map(to_text, (folders["text"] / "test.char.en").read_text(encoding="utf-8").splitlines())]
    assert lines_of(output, "S") == dict(enumerate(sources))
    found = hypotheses(output)
    assert {i: to_text(line) for i, (_, line) in found.items()} == lines_of(output, "D")
    assert re.search(r"Generate test with beam=1: BLEU = [\d.]+ ", output), "fairseq's own is called BLEU4"
    raw = [*sources, "", sources[-1]]  # twice in one buffer
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in raw), encoding="utf-8")
    more = ["--input", tmp_path / "text", "--buffer-size", "5", "--left-pad-source"]
    other = commands.run("fairseq-interactive", data, *given, *more)
    live = hypotheses(other)
    commands.assert_same_hypotheses({i: live[i] for i in found}, found)
    for label, expected in (("TS", map(to_characters, raw)), ("TT", (live[i][1] for i in range(len(raw))))):
        trees = lines_of(other, label)
        assert lines_of(output, label).items() <= trees.items()
        assert [from_brackets(trees[i])[1] for i in range(len(raw))] == [line.split() for line in expected]
    pairs = read_tree_file(enumerate(output.splitlines()), "output")
    assert [pair.sentence for pair in pairs] == list(range(len(sources)))
    assert all(pair.attention.sum(1) == pytest.approx(1, abs=0.01) for pair in pairs)
