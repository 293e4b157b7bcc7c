"""fairseq-syntax look --constituents: tables against counting one by one, pictures, and what it says of bad files."""

import gzip
import io
import json
import math
import random
import sys

import numpy as np
import programs
import pytest
from oracles import constituency as oracle

from fairseq_syntax.systems.latent_tree.statistics import random_trees
from fairseq_syntax.systems.latent_tree.tree_files import to_brackets
from fairseq_syntax.tools import look as program

SPACE = oracle.SPACE


def random_tree(rng, size):
    """A tree of so many symbols."""
    children = []
    while size:
        take = rng.randint(1, size)
        inner = rng.random() < 0.6 and (take < size or rng.random() < 0.3)
        children.append(random_tree(rng, take) if inner else rng.choice("abcde" + 2 * SPACE))
        size -= take if inner else 1
    return tuple(children)


@pytest.fixture(scope="module")
def corpus():
    """Number of sentence -> source, target, attention, and whether source and target are capped."""
    rng, numbers = random.Random(5), np.random.default_rng(5)
    found = {}
    for number in (4, 0, 2, 1, 9):
        source, target = (random_tree(rng, rng.randint(4, 14)) for _ in range(2))
        if number == 2:
            source, target = (), tuple("ab")
        rows, columns = len(oracle.nodes(target)) - 1, len(oracle.nodes(source))
        weights = numbers.dirichlet(np.full(columns, 0.5), size=rows).round(4)
        found[number] = source, target, weights.tolist(), (number == 4, False)
    return found


def tree_lines(number, source, target, attention, capped=None):
    spans = [[list(node[:2]) for node in oracle.nodes(tree)] for tree in (source, target)]
    values = {"source_spans": spans[0], "target_spans": spans[1][1:], "attention": attention}
    if capped is not None:
        values |= {"source_capped": capped[0], "target_capped": capped[1]}
    texts = {"TS": oracle.brackets(source), "TT": oracle.brackets(target), "TA": json.dumps(values)}
    return "".join(f"{kind}-{number}\t{text}\n" for kind, text in texts.items())


@pytest.fixture
def trees(corpus, tmp_path):
    path = tmp_path / "trees.txt"
    lines = [tree_lines(number, *parts[:3]) for number, parts in corpus.items()]
    path.write_text("".join(f"S-{i}\tx\n{line}H-{i}\t-1\tx\n" for i, line in enumerate(lines)), encoding="utf-8")
    return path


run = programs.runner(program, read=programs.tables)


def number(value):
    return "-" if math.isnan(value) else f"{value:.1f}"


def prf(counts):
    hits, found, given = counts
    return [number(100 * oracle.ratio(*pair)) for pair in ((hits, found), (hits, given), (2 * hits, found + given))]


def check_side(name, sentences, tables, words=None):
    """Rows of one side in the first three tables, without what is random."""
    shape = oracle.shape(sentences)
    (found,) = [row for row in tables[0] if row[:2] == [name, "found"]]
    assert found[2:10] == [
        number(shape["height"]),
        str(shape["highest"]),
        f"{shape['per_symbol']:.3f}",
        *(number(shape[key]) for key in ("children", "unary", "flat", "right", "left")),
    ]
    texts = [oracle.leaves(tree) for tree in sentences]
    right, left = ([make(text) for text in texts] for make in (oracle.right_branching, oracle.left_branching))
    (found,) = [row for row in tables[1] if row[:2] == [name, "found"]]
    assert found[2:4] == [prf(oracle.common_spans(sentences, given))[2] for given in (right, left)]
    for system, own in (("found", sentences), ("right", right), ("left", left)):
        (found,) = [row for row in tables[2] if row[:2] == [name, system]]
        of_words, of_all = oracle.segmentation(own, words)
        assert found[2:] == [*prf(of_words), prf(of_all)[1]]


def test_the_tables(corpus, trees, run):
    tables = run("--constituents", trees, "--format", "tsv")
    assert len(tables) == 4
    for side, name in enumerate(("source", "target")):
        check_side(name, [parts[side] for parts in corpus.values() if parts[side]], tables)
        rows = [[row for row in table if row[0] == name] for table in tables[:3]]
        assert [row[1] for row in rows[0]] == [row[1] for row in rows[1]] == ["found", "random"]
        assert [row[1] for row in rows[2]] == ["found", "random", "right", "left"]
        # as many constituents of the same text
        assert rows[0][0][4] == rows[0][1][4]
        assert {row[10] for row in rows[0]} == {"-"}, "nobody knows what was capped"
    expected = oracle.attention([(parts[2], len(oracle.nodes(parts[0]))) for parts in corpus.values()])
    header, row = tables[3]
    assert row[0] == str(expected["constituents"])
    assert [float(value) for value in row[1:]] == pytest.approx([*expected.values()][1:], abs=0.0501)
    assert [float(value) for value in row[1:6]] == pytest.approx([*expected.values()][1:6], abs=0.00051)
    assert len(header) == len(row)
    assert "source: 4 sentences" in run.said and "1 sentences without a symbol left out" in run.said
    assert "target: 5 sentences" in run.said and "0 sentences without a symbol left out" in run.said


def nested(line):
    """A tree as nested tuples, from its brackets."""
    open_ones = [[]]
    for token in line.split():
        if token == "(X":
            open_ones.append([])
        elif token == ")":
            done = tuple(open_ones.pop())
            open_ones[-1].append(done)
        else:
            open_ones[-1].append(token)
    return open_ones[0][0]


def test_the_rows_of_random_trees(corpus, trees, run):
    tables = run("--constituents", trees, "--format", "tsv", "--side", "target", "--samples", "3", "--seed", "8")
    targets = [target for _, (_, target, *_) in sorted(corpus.items())]
    texts = [oracle.leaves(tree) for tree in targets]
    sizes = np.array([(len(text), len(oracle.nodes(tree)) - 1) for text, tree in zip(texts, targets, strict=True)])
    generator = np.random.default_rng(8)
    draws = [[nested(line) for line in to_brackets(random_trees(*sizes.T, generator), texts)] for _ in range(3)]
    rows = [next(row for row in table if row[1] == "random")[2:] for table in tables]

    shapes = [oracle.shape(draw) for draw in draws]
    assert rows[0][0] == number(sum(shape["height"] for shape in shapes) / 3)
    assert rows[0][1] == str(max(shape["highest"] for shape in shapes))
    for cell, key in zip(rows[0][3:8], ("children", "unary", "flat", "right", "left"), strict=True):
        assert cell == number(sum(shape[key] for shape in shapes) / 3)

    def f1(pairs):
        return prf([sum(counts) for counts in zip(*(oracle.common_spans(*pair) for pair in pairs), strict=True)])[2]

    right, left = ([make(text) for text in texts] for make in (oracle.right_branching, oracle.left_branching))
    assert rows[1] == [*(f1([(draw, given) for draw in draws]) for given in (right, left)), "-"]
    assert [row[4] for row in tables[1] if row[1] == "found"] == [f1([(targets, draw) for draw in draws])]

    totals = np.sum([oracle.segmentation(draw) for draw in draws], axis=0).tolist()
    assert rows[2] == [*prf(totals[0]), prf(totals[1])[1]]


def test_one_side_with_gold_words(corpus, trees, run, tmp_path):
    lines, words = ["one", "two"] * 5, []
    for sentence, (source, *_) in sorted(corpus.items()):
        text = [symbol for symbol in oracle.leaves(source) if symbol != SPACE]
        cuts = [list(range(0, len(text), 2)), [0, *range(1, len(text), 3)]][sentence % 2]
        cut = [text[a:b] for a, b in zip(cuts, [*cuts[1:], len(text)], strict=True)] if text else []
        lines[sentence] = "  ".join("".join(word) for word in cut)
        words += [[len(word) for word in cut]] if source else []
    gold = tmp_path / "gold.gz"
    with gzip.open(gold, "wt") as file:
        file.writelines(f"{line}\n" for line in lines)
    tables = run("--constituents", trees, "--side", "source", "--words", gold, "--format", "tsv")
    assert len(tables) == 3, "no attention"
    assert {row[0] for table in tables for row in table[1:]} == {"source"}
    ordered = [parts[0] for _, parts in sorted(corpus.items()) if parts[0]]
    check_side("source", ordered, tables, words)
    assert "target" not in run.said


def test_capped_sentences(corpus, run, tmp_path, monkeypatch):
    text = "".join(tree_lines(number, *parts) for number, parts in corpus.items())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    tables = run("--constituents", "-", "--format", "tsv")
    assert [row[10] for row in tables[0][1:]] == ["25.0", "-", "0.0", "-"]


def test_unknown_characters_are_any(run, tmp_path):
    trees, gold = tmp_path / "trees", tmp_path / "gold"
    trees.write_text(tree_lines(0, (("a", "<unk>"), "_"), (), []))
    gold.write_text(f"a\u00e9 {SPACE}\n")
    tables = run("--constituents", trees, "--side", "source", "--words", gold, "--format", "tsv")
    assert tables[2][1][2:6] == ["100.0", "50.0", "66.7", "50.0"]


# --- pictures -----------------------------------------------------------------------------------------------------


def test_pictures(trees, run, tmp_path):
    """One, or a folder of several."""
    run("--constituents", trees, "--sentence", 4, "--draw", tmp_path / "picture.SVG")
    assert "source-bars" in (tmp_path / "picture.SVG").read_text()
    folder = tmp_path / "new" / "pictures"
    run("--constituents", trees, "--sentence", 4, 2, 4, "--draw", folder)
    # the target of sentence 2 has no constituent
    assert sorted(path.name for path in folder.iterdir()) == ["2-trees.svg", "4-attention.svg", "4-trees.svg"]


# --- bad files ----------------------------------------------------------------------------------------------------

GOOD = tree_lines(7, ("a", ("b",)), (("c",), "d"), [[0.5, 0.5]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no tree"),
        (GOOD + GOOD, ":4: a second TS- line of sentence 7, the first is line 1"),
        (GOOD[: GOOD.index("TA")], ":1: sentence 7 has a TS- line, but no TA- line"),
        (GOOD[: GOOD.index("attention")], ":3: TA-7 is not JSON"),
        (GOOD[: GOOD.index("TA")] + "TA-7\t[]\n", ":3: TA-7 is not a JSON object with source_spans"),
        (GOOD.replace('"target_spans"', '"spans"'), ":3: TA-7 is not a JSON object with source_spans"),
        (GOOD.replace("(X a (X b ) )", "(X a (X b )"), ":1: token"),
        (GOOD.replace("(X (X c ) d )", "(X c d )"), ":3: the target_spans of sentence 7"),
        (GOOD.replace("[1, 2]", "[0, 2]"), ":3: the source_spans of sentence 7 are not those of the tree in line 1"),
        (GOOD.replace("[[0.5, 0.5]]", "[[0.5, 0.6]]"), ":3: the attention is not one of weights"),
        (GOOD.replace("[[0.5, 0.5]]", "[[NaN, 0.5]]"), ":3: the attention is not one of weights"),
        (GOOD.replace("[[0.5, 0.5]]", "[[1.0]]"), ":3: the attention is not a table of 1 rows and 2 columns"),
        (GOOD.replace("[[0.5, 0.5]]", "[[0.5, 0.5], [1.0]]"), ":3: the attention is not a table"),
        (tree_lines(0, (), (), []), "no tree of the source has a symbol"),
    ],
)
def test_bad_trees(text, message, run, tmp_path):
    path = tmp_path / "trees"
    path.write_text(text)
    run("--constituents", path, status=1)
    assert f"fairseq-syntax look: {path}" in run.said
    assert message in run.said
