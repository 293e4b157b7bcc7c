"""examples/sa_nmt/subjects.py: how many subjects are attached to their verb, against loops over hand-made trees."""

import importlib.util
import random
from pathlib import Path

import numpy as np
import pytest
from corpora import random_heads
from oracles.dependency_trees import all_trees

from fairseq_syntax.evaluate.treebank import Treebank
from fairseq_syntax.trees.conllu import Sentence

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "sa_nmt" / "subjects.py"
spec = importlib.util.spec_from_file_location("subjects", SCRIPT)
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)


def sentence(heads, deprels=None, upos=None):
    count = len(heads)
    words = [f"w{i}" for i in range(count)]
    return Sentence(words, list(heads), list(deprels or ["dep"] * count), list(upos or ["NOUN"] * count))


def table(gold, predicted=None, auxiliaries=False):
    """Column -> row -> number."""
    treebank = Treebank(gold)
    flat = None if predicted is None else script.without_punctuation(gold, predicted)
    header, rows = script.subjects(treebank, flat, auxiliaries)
    return {column: {row[0]: row[i] for row in rows} for i, column in enumerate(header) if i}


@pytest.mark.parametrize("words, helpers", [(2, 0), (5, 0), (3, 1), (5, 2)])
def test_chance_is_that_of_all_trees(words, helpers):
    trees = all_trees(words)
    rest = words - 2 - helpers
    gold = [sentence([1, -1, *[1] * (words - 2)], ["nsubj", "root", *["aux"] * helpers, *["dep"] * rest])]
    found = table(gold, auxiliaries=helpers > 0)
    verbs = range(1, 2 + helpers)
    either = [any(heads[0] == verb or heads[verb] == 0 for verb in verbs) for heads in trees]
    assert found["chance"]["all"] == pytest.approx(100 * np.mean(either))
    assert found["chance DA"]["all"] == pytest.approx(100 * np.mean([heads[0] in verbs for heads in trees]))


@pytest.mark.parametrize("auxiliaries", [False, True])
def test_random_trees_against_loops(auxiliaries):
    """An auxiliary is as good as the verb, if so told."""
    rng = random.Random(3)
    labels = ["nsubj", "nsubj:pass", "obj", "csubj", "aux"]
    sizes = [rng.randint(1, 12) for _ in range(40)]
    gold = [sentence(random_heads(rng, size), rng.choices(labels, k=size)) for size in sizes]
    predicted = [random_heads(rng, size) for size in sizes]
    expected = []  # words between, in either direction, directed, L, L directed
    for tree, other in zip(gold, predicted, strict=True):
        for word, head in enumerate(tree.heads):
            if head >= 0 and tree.deprels[word].startswith("nsubj"):
                helpers = [w for w, h in enumerate(tree.heads) if h == head and tree.deprels[w] == "aux"]
                verbs = [head, *helpers] if auxiliaries else [head]
                either = any(other[word] == verb or other[verb] == word for verb in verbs)
                adjacent = any(abs(verb - word) == 1 for verb in verbs)
                expected.append((abs(head - word) - 1, either, other[word] in verbs, adjacent, word + 1 in verbs))
    found = table(gold, predicted, auxiliaries)
    for row, low, high in (("all", 0, 99), ("0", 0, 0), ("1 to 2", 1, 2), ("3 to 5", 3, 5), ("6 or more", 6, 99)):
        here = [item[1:] for item in expected if low <= item[0] <= high]
        assert found["subjects"][row] == len(here) > 0
        for column, share in zip(("latent", "latent DA", "L", "L DA"), np.mean(here, axis=0), strict=True):
            assert found[column][row] == pytest.approx(100 * share)


ROWS = "1\tdogs\t_\tNOUN\t_\t_\t2\t{label}\t_\t_\n2\tbark\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"


def test_program(tmp_path, capsys):
    gold, other = tmp_path / "gold.conllu", tmp_path / "other.conllu"
    gold.write_text(ROWS.format(label="nsubj"))
    other.write_text(ROWS.format(label="_"))
    assert script.main(["--gold", str(gold), "--predicted", str(other)]) == 0
    assert capsys.readouterr().out.splitlines()[2].split() == [
        "all", "1", *["100.0"] * 5, "0.0", "100.0", "50.0"
    ]  # fmt: skip
    # trees of other words, and a treebank without relations
    other.write_text(ROWS.format(label="_").replace("dogs", "cats"))
    assert script.main(["--gold", str(gold), "--predicted", str(other)]) == 1
    assert "not the sentences of" in capsys.readouterr().err
    gold.write_text(ROWS.format(label="_"))
    assert script.main(["--gold", str(gold)]) == 1
    assert "no word has the relation nsubj" in capsys.readouterr().err
