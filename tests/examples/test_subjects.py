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
    flat = None if predicted is None else treebank.without_punctuation(predicted)
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


def test_auxiliaries_are_as_good_as_the_verb():
    # "dogs had seen cats . birds sing": an auxiliary belongs to its verb only
    gold = [sentence([2, 2, -1, 2], ["nsubj", "aux", "root", "obj"]), sentence([1, -1], ["nsubj", "root"])]
    predicted = [[1, 2, -1, 2], [-1, 0]]
    assert table(gold, predicted)["latent"]["all"] == 50 and table(gold, predicted)["latent DA"]["all"] == 0
    found = table(gold, predicted, auxiliaries=True)
    assert found["latent"]["all"] == 100 and found["latent DA"]["all"] == 50
    assert found["L"]["all"] == 100 and table(gold)["L"]["all"] == 50
    # the arc from dogs to an object is none of these
    assert table(gold, [[3, 2, -1, 2], [-1, 0]], auxiliaries=True)["latent"] == {"all": 50, "1 to 2": 0, "0": 100}


def test_random_trees_against_loops():
    rng = random.Random(3)
    sizes = [rng.randint(1, 12) for _ in range(40)]
    gold = [
        sentence(random_heads(rng, size), rng.choices(["nsubj", "nsubj:pass", "obj", "csubj", "aux"], k=size))
        for size in sizes
    ]
    predicted = [random_heads(rng, size) for size in sizes]
    expected = []  # words between, in either direction, directed, L, L directed
    helped = []  # words between, in either direction, directed
    for tree, other in zip(gold, predicted, strict=True):
        for word, head in enumerate(tree.heads):
            if head >= 0 and tree.deprels[word].startswith("nsubj"):
                neighbours = other[word] == head or other[head] == word
                adjacent = abs(head - word) == 1
                verbs = [head, *(w for w, h in enumerate(tree.heads) if h == head and tree.deprels[w] == "aux")]
                arcs = [(other[word] == verb, other[verb] == word) for verb in verbs]
                helped.append((abs(head - word) - 1, any(map(any, arcs)), any(right for right, _ in arcs)))
                expected.append(
                    (abs(head - word) - 1, neighbours, other[word] == head, adjacent, adjacent and head > word)
                )
    found, with_helpers = table(gold, predicted), table(gold, predicted, auxiliaries=True)
    assert with_helpers["latent"]["all"] > found["latent"]["all"]
    for row, low, high in (("all", 0, 99), ("0", 0, 0), ("1 to 2", 1, 2), ("3 to 5", 3, 5), ("6 or more", 6, 99)):
        here = [item[1:] for item in expected if low <= item[0] <= high]
        assert found["subjects"][row] == len(here) > 0
        for column, share in zip(("latent", "latent DA", "L", "L DA"), np.mean(here, axis=0), strict=True):
            assert found[column][row] == pytest.approx(100 * share)
        of_helped = np.mean([item[1:] for item in helped if low <= item[0] <= high], axis=0)
        for column, share in zip(("latent", "latent DA"), of_helped, strict=True):
            assert with_helpers[column][row] == pytest.approx(100 * share)


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
