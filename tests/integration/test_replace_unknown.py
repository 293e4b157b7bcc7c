"""--replace-unk: every unknown word of a translation becomes the source word that it attends to most, or its entry."""

import random
import re
from types import SimpleNamespace

import pytest
import torch
from corpora import Item, random_heads, write_split
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import GenerationConfig
from integration import commands
from integration.commands import DECODING, PACKAGE, hypotheses

from fairseq_syntax.decoding.unknown_words import strongest_words

ARCH = "pascal_transformer_tiny"
WORDS = ["the", "dog", "sees", "small", "and"]
RARE = 3  # of the words of a sentence, every third occurs nowhere else

PAD, EOS, WORD = 1, 2, 9


def strongest_word(column, tokens):
    """Position of the strongest word of one sentence, by a loop; 0 if there is none."""
    start = next(i for i, token in enumerate(tokens) if token != PAD)
    best, found = None, 0
    for i, token in enumerate(tokens):
        if token not in (PAD, EOS) and (best is None or column[i] > best):
            best, found = column[i], i - start
    return found


def test_the_strongest_word_is_that_of_a_loop():
    """Of any lengths, with padding on one side, and mass everywhere; equal weights are common."""
    rng = random.Random(1)
    for _ in range(100):
        lengths, left = rng.choices(range(6), k=rng.randint(1, 4)), rng.random() < 0.5
        rows = [([WORD] * length + [EOS], [PAD] * (max(lengths) - length)) for length in lengths]
        tokens = torch.tensor([padding + row if left else row + padding for row, padding in rows])
        sentence = torch.tensor(rng.choices(range(len(rows)), k=rng.randint(1, 6)))
        attention = torch.tensor([[float(rng.randint(0, 4)) for _ in sentence] for _ in range(tokens.shape[1])])
        columns = enumerate(sentence.tolist())
        expected = [strongest_word(attention[:, column].tolist(), tokens[row].tolist()) for column, row in columns]
        assert strongest_words(attention, sentence, tokens, PAD).tolist() == expected
        assert strongest_words(attention.half(), sentence, tokens, PAD).tolist() == expected


@pytest.fixture(scope="module")
def rare(tmp_path_factory):
    """A corpus in which names occur once: `data`, `raw` (plain text), `text`, `lines`; a `checkpoint` trained on it.

    A few updates are enough for a model that writes many an unknown word.
    """
    folder, rng, lines = tmp_path_factory.mktemp("rare"), random.Random(3), []
    for split, count in (("train", 120), ("valid", 4), ("test", 23)):
        items = []
        for number in range(count):
            size = rng.randint(1, 8)
            words = [f"{split}{number}x{i}" if i % RARE == 1 else rng.choice(WORDS) for i in range(size)]
            items.append(Item([[word] for word in words], random_heads(rng, size)))
        write_split(folder / split, items)
        lines = [item.text() for item in items]
    prefixes = {split: folder / split for split in ("train", "valid", "test")}
    frequent = ("--thresholdsrc", "2", "--thresholdtgt", "2")
    data = commands.binarize(prefixes, folder / "bin", *frequent)
    raw = commands.binarize(prefixes, folder / "raw", *frequent, "--dataset-impl", "raw")
    commands.train(data, folder / "model", ARCH, "--max-update", "25", "--lr", "0.02", "--max-tokens", "300")
    checkpoint = folder / "model" / "checkpoint_last.pt"
    return SimpleNamespace(data=data, raw=raw, text=folder / "test.en", lines=lines, checkpoint=checkpoint)


def load(rare):
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(rare.checkpoint)], arg_overrides={"data": str(rare.data), "user_dir": str(PACKAGE)}
    )
    task.load_dataset("test")
    return model.eval(), task, task.dataset("test")


def settings(**options):
    return SimpleNamespace(**{**vars(GenerationConfig()), "beam": 3, "max_len_a": 0, "max_len_b": 25, **options})


def expected_lines(rare, entries):
    """Sentence -> translation with unknown words replaced, by attention one sentence at a time, and by loops."""
    model, task, dataset = load(rare)
    generator = task.build_generator([model], settings())
    assert type(generator).__name__ == "SequenceGenerator"
    found = {}
    for number, line in enumerate(rare.lines):
        batch = dataset.collater([dataset[number]])
        (beam,) = task.inference_step(generator, [model], batch)
        attention, source = beam[0]["attention"], line.split()
        words = []
        for position, token in enumerate(beam[0]["tokens"].tolist()[:-1]):
            word = task.target_dictionary[token]
            if word == "<unk>":
                word = source[int(attention[:-1, position].argmax())]
                word = entries.get(word, word)
            words.append(word)
        found[number] = " ".join(words)
    return found


def test_generate_replaces_unknown_words(rare, tmp_path):
    entries = tmp_path / "entries"
    entries.write_text("test3x1 Drei\nthe DIE\n")
    options = ["--path", rare.checkpoint, *DECODING, "--dataset-impl", "raw", "--max-tokens", "60", "--left-pad-source"]
    plain = hypotheses(commands.run("fairseq-generate", rare.raw, *options))
    assert sum("<unk>" in text for _, text in plain.values()) > 5
    found = hypotheses(commands.run("fairseq-generate", rare.raw, *options, "--replace-unk", entries))
    expected = expected_lines(rare, {"test3x1": "Drei", "the": "DIE"})
    assert {number: text for number, (_, text) in found.items()} == expected
    assert not any("<unk>" in text or "<eos>" in text for _, text in found.values())
    scores = [{number: score for number, (score, _) in result.items()} for result in (found, plain)]
    assert scores[0] == pytest.approx(scores[1])


def test_interactive_copies_words_that_no_dictionary_has(rare):
    options = ["--path", rare.checkpoint, "--input", rare.text, *DECODING, "--buffer-size", 10, "--batch-size", 4]
    options += ["--parser", "conllu", "--parser-model", f"{rare.text}.conllu"]
    output = commands.run("fairseq-interactive", rare.data, *options, "--replace-unk", "")
    assert {number: text for number, (_, text) in hypotheses(output).items()} == expected_lines(rare, {})
    # the source is shown as it came
    shown = dict(re.findall(r"^S-(\d+)\t(.*)$", output, re.MULTILINE))
    assert shown == {str(number): line for number, line in enumerate(rare.lines)}


def test_alignments_are_those_of_printed_words(rare):
    """A BOS that a model generates is not printed; words after it keep their source words."""
    model, task, dataset = load(rare)
    generator = task.build_generator([model], settings(replace_unk="", beam=1))
    batch = dataset.collater([dataset[3]])
    bos, unk = task.target_dictionary.bos(), task.target_dictionary.unk()
    prefix = torch.tensor([[unk, bos, unk, unk]])
    (((hypothesis,)),) = task.inference_step(generator, [model], batch, prefix_tokens=prefix)
    assert hypothesis["tokens"].tolist()[:4] == prefix[0].tolist()
    tokens = batch["net_input"]["src_tokens"][0].tolist()
    columns = hypothesis["attention"].T[hypothesis["tokens"].ne(bos)].tolist()
    assert hypothesis["alignment"].tolist() == [strongest_word(column, tokens) for column in columns]
