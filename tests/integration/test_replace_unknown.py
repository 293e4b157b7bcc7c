"""--replace-unk: every unknown word of a translation becomes the source word that it attends to most, or its entry."""

import random
import re
from types import SimpleNamespace

import pytest
import torch
from corpora import random_heads
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import GenerationConfig
from hypothesis import given
from hypothesis import strategies as st
from integration import commands
from integration.commands import DECODING, PACKAGE, hypotheses

from fairseq_syntax.decoding.unknown_words import strongest_words
from fairseq_syntax.trees.conllu import Sentence, format_sentence

PASCAL = "pascal_transformer_tiny"
WORDS = {"the": "die", "dog": "hund", "sees": "sieht", "small": "klein", "and": "und"}
RARE = 3  # of the words of a sentence, every third occurs nowhere else
SIDES = {"right": (), "left": ("--left-pad-source",)}

PAD, EOS, WORD = 1, 2, 9


def strongest_word(column, tokens):
    """Position of the strongest word of one sentence, by a loop; 0 if there is none."""
    start = next(i for i, token in enumerate(tokens) if token != PAD)
    best, found = None, 0
    for i, token in enumerate(tokens):
        if token not in (PAD, EOS) and (best is None or column[i] > best):
            best, found = column[i], i - start
    return found


@st.composite
def batches(draw):
    """(tokens, attention, sentence of each column): any lengths, padding on one side, mass everywhere."""
    lengths = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    width = max(lengths) + 1
    left = draw(st.booleans())
    rows = []
    for length in lengths:
        row, padding = [WORD] * length + [EOS], [PAD] * (width - length - 1)
        rows.append(padding + row if left else row + padding)
    sentence = draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=6))
    cells = st.integers(0, 4).map(float)  # equal ones are common
    attention = [[draw(cells) for _ in sentence] for _ in range(width)]
    return torch.tensor(rows), torch.tensor(attention), torch.tensor(sentence)


@given(batches())
def test_the_strongest_word_is_that_of_a_loop(batch):
    tokens, attention, sentence = batch
    expected = [
        strongest_word(attention[:, column].tolist(), tokens[row].tolist())
        for column, row in enumerate(sentence.tolist())
    ]
    assert strongest_words(attention, sentence, tokens, PAD).tolist() == expected
    assert strongest_words(attention.half(), sentence, tokens, PAD).tolist() == expected


@pytest.fixture(scope="module")
def rare(tmp_path_factory):
    """A corpus in which names occur once and are translated by themselves: `data`, `raw` (plain text), `text`, `lines`.

    The target has one word more, so that copies of positions would be wrong.
    """
    folder = tmp_path_factory.mktemp("rare")
    rng = random.Random(3)
    (folder / "text").mkdir()
    lines = {}
    for split, count in (("train", 120), ("valid", 4), ("test", 23)):
        source = [
            [f"{split}{number}x{i}" if i % RARE == 1 else rng.choice(list(WORDS)) for i in range(rng.randint(1, 8))]
            for number in range(count)
        ]
        lines[split] = [" ".join(words) for words in source]
        target = [" ".join(["so", *(WORDS.get(word, word) for word in words)]) for words in source]
        trees = [
            Sentence(words, random_heads(rng, len(words)), ["dep"] * len(words), ["X"] * len(words)) for words in source
        ]
        for suffix, text in (
            ("en", "".join(f"{line}\n" for line in lines[split])),
            ("de", "".join(f"{line}\n" for line in target)),
            ("en.conllu", "".join(map(format_sentence, trees))),
        ):
            (folder / "text" / f"{split}.{suffix}").write_text(text, encoding="utf-8")
    prefixes = {split: folder / "text" / split for split in lines}
    frequent = ("--thresholdsrc", "2", "--thresholdtgt", "2")
    data = commands.binarize(prefixes, folder / "bin", *frequent)
    raw = commands.binarize(prefixes, folder / "raw", *frequent, "--dataset-impl", "raw")
    return SimpleNamespace(data=data, raw=raw, text=folder / "text" / "test.en", lines=lines["test"])


@pytest.fixture(scope="module")
def checkpoint(rare, tmp_path_factory):
    """Function: architecture -> checkpoint of a model of a few updates, which knows many an unknown word."""
    made = {}

    def get(arch):
        if arch not in made:
            directory = tmp_path_factory.mktemp(arch)
            commands.train(rare.data, directory, arch, "--max-update", "25", "--lr", "0.02", "--max-tokens", "300")
            made[arch] = directory / "checkpoint_last.pt"
        return made[arch]

    return get


def load(paths, data, left_pad=False):
    models, _, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(path) for path in paths],
        arg_overrides={"data": str(data), "left_pad_source": left_pad, "user_dir": str(PACKAGE)},
    )
    task.load_dataset("test")
    for model in models:
        model.eval()
    return models, task, task.dataset("test")


def settings(**options):
    return SimpleNamespace(**{**vars(GenerationConfig()), "beam": 3, "max_len_a": 0, "max_len_b": 25, **options})


def expected_lines(rare, paths, entries):
    """Sentence -> translation with unknown words replaced, by attention one sentence at a time, and by loops."""
    models, task, dataset = load(paths, rare.data)
    generator = task.build_generator(models, settings())
    assert type(generator).__name__ == "SequenceGenerator"
    found = {}
    for number, line in enumerate(rare.lines):
        batch = dataset.collater([dataset[number]])
        (beam,) = task.inference_step(generator, models, batch)
        attention, source = beam[0]["attention"], line.split()
        words = []
        for position, token in enumerate(beam[0]["tokens"].tolist()[:-1]):
            word = task.target_dictionary[token]
            if word == "<unk>":
                column = attention[:, position].tolist()
                best = max(range(len(source)), key=lambda i, column=column: column[i])
                word = entries.get(source[best], source[best])
            words.append(word)
        found[number] = " ".join(words)
    return found


@pytest.mark.parametrize(("arch", "side"), [("nmt_lstm_tiny", "right"), (PASCAL, "left")])
def test_generate_replaces_unknown_words(rare, checkpoint, tmp_path, arch, side):
    paths = [checkpoint(arch)]
    entries = tmp_path / "entries"
    entries.write_text("test3x1 Drei\nthe DIE\n")
    options = ["--path", paths[0], *DECODING, "--dataset-impl", "raw", "--max-tokens", "60", *SIDES[side]]
    plain = hypotheses(commands.run("fairseq-generate", rare.raw, *options))
    assert sum("<unk>" in text for _, text in plain.values()) > 5
    found = hypotheses(commands.run("fairseq-generate", rare.raw, *options, "--replace-unk", entries))
    expected = expected_lines(rare, paths, {"test3x1": "Drei", "the": "DIE"})
    assert {number: text for number, (_, text) in found.items()} == expected
    assert not any("<unk>" in text or "<eos>" in text for _, text in found.values())
    scores = [{number: score for number, (score, _) in result.items()} for result in (found, plain)]
    assert scores[0] == pytest.approx(scores[1])


def test_interactive_copies_words_that_no_dictionary_has(rare, checkpoint):
    options = ["--path", checkpoint(PASCAL), "--input", rare.text, *DECODING, "--buffer-size", 10, "--batch-size", 4]
    options += ["--parser", "conllu", "--parser-model", f"{rare.text}.conllu"]
    output = commands.run("fairseq-interactive", rare.data, *options, "--replace-unk", "")
    found = {number: text for number, (_, text) in hypotheses(output).items()}
    assert found == expected_lines(rare, [checkpoint(PASCAL)], {})
    # the source is shown as it came
    shown = dict(re.findall(r"^S-(\d+)\t(.*)$", output, re.MULTILINE))
    assert shown == {str(number): line for number, line in enumerate(rare.lines)}


def test_alignments_are_those_of_printed_words(rare, checkpoint):
    """A BOS that a model generates is not printed; words after it keep their source words."""
    models, task, dataset = load([checkpoint("nmt_lstm_tiny")], rare.data)
    generator = task.build_generator(models, settings(replace_unk="", beam=1))
    batch = dataset.collater([dataset[3]])
    bos, length = task.target_dictionary.bos(), 4
    prefix = torch.tensor([[task.target_dictionary.unk(), bos] + [task.target_dictionary.unk()] * (length - 2)])
    (((hypothesis,)),) = task.inference_step(generator, models, batch, prefix_tokens=prefix)
    assert hypothesis["tokens"].tolist()[:length] == prefix[0].tolist()
    assert len(hypothesis["alignment"]) == len(hypothesis["tokens"]) - int(hypothesis["tokens"].eq(bos).sum())
    tokens = batch["net_input"]["src_tokens"][0].tolist()
    columns = hypothesis["attention"].T[hypothesis["tokens"].ne(bos)].tolist()
    assert hypothesis["alignment"].tolist() == [strongest_word(column, tokens) for column in columns]
