"""Latent trees through fairseq's commands: from text in characters to translations with trees."""

import re
from pathlib import Path

import pytest
from fairseq import options
from fairseq_cli import preprocess
from integration import commands
from integration.commands import TRAINING, hypotheses, records

from fairseq_syntax.systems.latent_tree.tree_files import from_brackets, read_tree_file
from fairseq_syntax.trees.characters import to_characters, to_text

TRAIN, TEST = 303, 21
NOUNS = {"Hund": "dog", "Ball": "ball", "Kind (klein)": "child (small)", "Haus": "house"}
VERBS = {"sieht": "sees", "hat": "has", "mag": "likes"}


def pair(number: int) -> tuple[str, str]:
    """A sentence and its translation, with brackets in some."""
    nouns, verbs = list(NOUNS.items()), list(VERBS.items())
    subject, verb, thing = nouns[number % 4], verbs[number // 4 % 3], nouns[number // 12 % 4]
    german, english = zip(subject, verb, thing, strict=True)
    return " ".join(german), " ".join(english)


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    """train, valid and test .de and .en, plain; and the same in characters, .char."""
    folder = tmp_path_factory.mktemp("latent_tree")
    for split, count in (("train", TRAIN), ("valid", 9), ("test", TEST)):
        lines = [pair(i * 5) for i in range(count)]
        if split == "test":
            lines[3] = ("", "nothing")
            lines[7] = lines[6]  # in one buffer
        for place, language in enumerate(("de", "en")):
            plain = [line[place] for line in lines]
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in plain), encoding="utf-8")
            characters = "".join(f"{to_characters(line)}\n" for line in plain)
            (folder / f"{split}.char.{language}").write_text(characters, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def data(text) -> Path:
    given = [f"--{split}pref={text / split}.char" for split in ("train", "valid", "test")]
    more = ["-s", "de", "-t", "en", "--padding-factor", "1", "--destdir", str(text / "bin")]
    preprocess.main(options.get_preprocessing_parser().parse_args([*given, *more]))
    return text / "bin"


BLEU = ["--eval-bleu", "--eval-bleu-args", '{"beam": 1, "max_len_a": 0, "max_len_b": 30}']
BEST = ["--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric"]
LATENT = [
    *("--task", "tree_translation", "--criterion", "reinforce_tree"),
    *("--batch-size", "30", "--max-tokens", "9999", "--required-batch-size-multiple", "1"),
]
DECODING = ["--cpu", "--beam", "1", "--max-len-a", "0", "--max-len-b", "30", "--bpe", "syntax_char"]
TASK = ["--task", "tree_translation"]


def train(data, folder, *more, arch="latent_tree_rnng_tiny"):
    """Records of the log; with validation."""
    training = [option for option in TRAINING if option != "--disable-validation"]
    # they smooth labels
    training = [*training[: training.index("--criterion")], *training[training.index("--seed") :]]
    given = [*training, *more, "--save-dir", folder]
    return records(commands.run("fairseq-train", data, "--arch", arch, *given))


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """A model of 11 updates, an epoch, with three validations; and the log."""
    folder = tmp_path_factory.mktemp("trained")
    return folder, train(data, folder, *LATENT, *BLEU, *BEST, "--max-epoch", "1", "--save-interval-updates", "5")


def lines_of(output: str, label: str) -> dict[int, str]:
    """Number -> last field of the lines that start with a label."""
    return {int(n): value for n, value in re.findall(rf"^{label}-(\d+)\t(?:-?[\d.]+\t)?(.*)$", output, re.MULTILINE)}


def test_training_reports_and_keeps_the_best(trained):
    folder, log = trained
    validated = [record for record in log if "valid_bleu" in record]
    assert len(validated) == 3
    for record in validated:
        assert 0 <= float(record["valid_bleu"]) < 100 and float(record["valid_loss"]) > 0
    assert (folder / "checkpoint_best.pt").exists()
    # 303 sentences by 30 are 11 updates: no sentence is dropped
    assert max(int(record["train_num_updates"]) for record in log if "train_num_updates" in record) == 11


def test_binarized_and_raw_text_are_translated_alike(data, text, trained):
    """fairseq-generate and fairseq-interactive, in buffers; neither padding nor neighbours make a difference.

    Yields of the trees are the sentences.
    """
    given = [*TASK, "--path", trained[0] / "checkpoint_last.pt", *DECODING, "--batch-size", "4", "--rnng-tree-output"]
    output = commands.run("fairseq-generate", data, *given, "--scoring", "sacrebleu")
    sources = (text / "test.de").read_text(encoding="utf-8").splitlines()
    assert lines_of(output, "S") == dict(enumerate(sources))
    found = hypotheses(output)
    assert {i: to_text(line) for i, (_, line) in found.items()} == lines_of(output, "D")
    assert re.search(r"Generate test with beam=1: BLEU = [\d.]+ ", output), "fairseq's own is called BLEU4"
    more = ["--input", text / "test.de", "--buffer-size", "5", "--left-pad-source"]
    other = commands.run("fairseq-interactive", data, *given, *more)
    commands.assert_same_hypotheses(hypotheses(other), found)
    for label, expected in (
        ("TS", {i: to_characters(line).split() for i, line in enumerate(sources)}),
        ("TT", {i: line.split() for i, (_, line) in found.items()}),
    ):
        assert lines_of(other, label) == lines_of(output, label)
        assert {i: from_brackets(tree)[1] for i, tree in lines_of(output, label).items()} == expected
    pairs = read_tree_file(enumerate(output.splitlines()), "output")
    assert [pair.sentence for pair in pairs] == list(range(TEST))
    assert all(pair.attention.sum(1) == pytest.approx(1, abs=0.01) for pair in pairs)
