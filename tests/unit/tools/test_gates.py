"""Which tags have the highest norm of the gate (Tran & Bisk 2018, Sec. 5: "the frequencies with which the highest
activation norm in a sentence is applied to a given part-of-speech tag")."""

from collections import Counter
from pathlib import Path

import programs
import pytest
import torch

from fairseq_syntax.tools import look
from fairseq_syntax.tools.loaded_model import join_words, load_model
from fairseq_syntax.trees.conllu import Sentence, format_sentence

run = programs.runner(look)


@pytest.fixture(scope="module")
def tags(latent, tmp_path_factory) -> Path:
    """The target side of the test split: tags are the first letters of words."""
    path = tmp_path_factory.mktemp("tags") / "test.de.conllu"
    lines = [line.replace("@@ ", "").split() for line in Path(f"{latent.text}.de").read_text().splitlines()]
    trees = [Sentence(words, range(-1, len(words) - 1), ["dep"] * len(words), [w[0] for w in words]) for words in lines]
    path.write_text("".join(map(format_sentence, trees)))
    return path


def test_tags_of_the_highest_gates_are_those_of_one_sentence_at_a_time(latent, trained, tags, run):
    checkpoint = trained("sa_nmt_shared_tiny")
    printed = run(latent.data, "--path", checkpoint, "--cpu", "--subset", "test", "--tags", tags).splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in printed[1:]}
    loaded = load_model(str(checkpoint), str(latent.data), cpu=True)
    split, highest, every = loaded.load_split("test"), Counter(), Counter()
    for number in range(len(split)):
        batch = split.collater([split[number]])
        with torch.no_grad():
            norms = loaded.model(**batch["net_input"])[1]["gate_norm"][0]
        tokens = [loaded.task.target_dictionary[i] for i in batch["target"][0].tolist()]
        words, of_token = join_words(tokens[:-1], "subword_nmt")
        of_tokens = [*(words[i][0] for i in of_token), "</s>"]
        highest[of_tokens[int(norms.argmax())]] += 1
        every.update(of_tokens)
    assert {tag: int(row[0]) for tag, row in rows.items()} == {tag: highest[tag] for tag in every}
    assert [row[0] for row in rows.values()] == sorted((row[0] for row in rows.values()), key=int, reverse=True)
    shares = {tag: f"{100 * count / every.total():.1f}" for tag, count in every.items()}
    assert {tag: row[2] for tag, row in rows.items()} == shares and not Path("look").exists()
