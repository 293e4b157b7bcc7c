"""Attachment scores: by hand, by loops, and on treebanks by an independent count."""

import gzip

import conllu
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import forests, trees

from fairseq_syntax.evaluate.treebank import Treebank, flatten, left_branching, remove, right_branching, undirected_hits
from fairseq_syntax.trees.conllu import Sentence, read_conllu


def sentence(heads, upos=None, deprels=None):
    words = [f"w{i}" for i in range(len(heads))]
    return Sentence(words, list(heads), deprels or ["dep"] * len(heads), upos or ["X"] * len(heads))


# I saw , her .  (saw is the root)
GOLD = sentence(
    [1, -1, 3, 1, 1], ["PRON", "VERB", "PUNCT", "PRON", "PUNCT"], ["nsubj", "root", "punct", "obj", "punct"]
)


def shares(scores):
    return tuple(scores[name] for name in ("DA", "UA", "UAS"))


@pytest.mark.parametrize(
    ("predicted", "directed", "undirected", "uas"),
    [
        ([1, -1, 3, 1, 1], 3, 3, 5),
        # the arc I -> saw is turned round; I is the root
        ([-1, 0, 3, 1, 1], 1, 2, 3),
        # the full stop is the root, and its dependent saw becomes one
        ([1, 4, 1, 1, -1], 3, 3, 2),
        # everything hangs on the comma, the root: three roots, one of them right
        ([2, 2, -1, 2, 2], 1, 1, 0),
    ],
)
def test_scores_by_hand(predicted, directed, undirected, uas):
    expected = (100 * directed / 3, 100 * undirected / 3, 100 * uas / 5)
    assert shares(Treebank([GOLD]).scores([predicted])["trees"]) == pytest.approx(expected)


def test_two_arcs_between_the_same_words_count_once():
    gold = np.array([1, -1, 1])
    assert undirected_hits(gold, np.array([1, 0, 1])).tolist() == [True, False, True]
    # neither is the gold arc
    assert undirected_hits(np.array([2, 2, -1]), np.array([1, 0, -1])).tolist() == [False, False, True]


def test_sentences_that_cannot_be_scored_are_left_out():
    unparsed = sentence([-2, -2])
    marks = sentence([-1, 0], ["PUNCT", "PUNCT"])
    empty = sentence([])
    one = sentence([-1])
    sentences = [unparsed, GOLD, marks, empty, one]
    bank = Treebank(sentences)
    assert bank.kept.tolist() == [False, True, False, False, True]
    assert (bank.words, bank.scored) == (6, 4)
    # what is predicted for the others does not matter
    assert shares(bank.scores([[-1, 0], GOLD.heads, [1, -1], [], [-1]])["trees"]) == (100, 100, 100)
    assert Treebank(sentences, min_words=2).kept.tolist() == [False, True, False, False, False]


@pytest.mark.parametrize("tag", ["_", "."])
def test_a_treebank_without_punctuation_is_told_of(caplog, tag):
    Treebank([GOLD])
    assert not caplog.messages
    Treebank([sentence(GOLD.heads, [*GOLD.upos[:2], tag, "PRON", tag])])
    (said,) = caplog.messages
    assert said.startswith("no word of the treebank has the UPOS PUNCT, so punctuation counts as words")


def test_nothing_to_score():
    bank = Treebank([sentence([])])
    assert bank.scored == 0
    assert {shares(scores) for scores in bank.scores([[]]).values()} == {(0, 0, 0)}


def test_trees_of_other_words_are_refused():
    with pytest.raises(ValueError, match="2 trees for 1 sentences"):
        Treebank([GOLD]).scores([GOLD.heads, GOLD.heads])
    with pytest.raises(ValueError, match="not over the words"):
        Treebank([GOLD]).scores([[-1]])


def test_recall_by_relation():
    gold = [GOLD, sentence([-1, 0], deprels=["root", "obj:x"])]
    bank = Treebank(gold)
    found = bank.scores([[1, -1, 3, 1, 1], [1, -1]])["trees"]["relations"]
    assert {name: tuple(scores.values()) for name, scores in found.items()} == {
        "obj": (2, 50.0, 100.0),
        "root": (2, 50.0, 50.0),
        "nsubj": (1, 100.0, 100.0),
    }


@st.composite
def pairs(draw):
    gold = draw(trees())
    return np.array(gold), np.array(draw(trees(min_words=len(gold), max_words=len(gold))))


@given(pairs())
def test_undirected_is_symmetric_for_trees_and_not_below_directed(pair):
    gold, predicted = pair
    directed, undirected = gold == predicted, undirected_hits(gold, predicted)
    assert (undirected >= directed).all()
    assert undirected.sum() == undirected_hits(predicted, gold).sum()
    edges = [{frozenset((i, h)) if h >= 0 else (i,) for i, h in enumerate(tree.tolist())} for tree in pair]
    assert undirected.sum() == len(edges[0] & edges[1])


def independent_scores(path, predict):
    """DA, UA and UAS in percent, counted word by word with the conllu package."""
    right = reached = words = all_right = all_words = 0
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for tokens in conllu.parse_incr(file):
            nodes = {token["id"]: token for token in tokens if isinstance(token["id"], int)}
            real = [i for i in nodes if nodes[i]["upos"] != "PUNCT"]
            if not real:
                continue

            def nearest(i, nodes=nodes):
                head = nodes[i]["head"]
                while head and nodes[head]["upos"] == "PUNCT":
                    head = nodes[head]["head"]
                return head

            gold = {i: nearest(i) for i in real}
            guess = predict(real)
            for i in real:
                words += 1
                right += gold[i] == guess[i]
                reached += gold[i] == guess[i] or (guess[i] != 0 and gold[guess[i]] == i)
            over_all = predict(list(nodes))
            all_words += len(nodes)
            all_right += sum(nodes[i]["head"] == over_all[i] for i in nodes)
    return 100 * right / words, 100 * reached / words, 100 * all_right / all_words


def next_word(ids):
    return dict(zip(ids, [*ids[1:], 0], strict=True))


def word_before(ids):
    return dict(zip(ids, [0, *ids[:-1]], strict=True))


@pytest.mark.parametrize(
    ("name", "left", "right"),
    # as printed in Table 3 of the paper, for another release of the treebanks
    [("en_ewt", (34.0, 40.5), (7.8, 40.9)), ("de_gsd", (34.4, 42.8), (8.6, 41.5))],
)
def test_baselines_agree_with_an_independent_count_and_with_the_paper(real_data, name, left, right):
    path = real_data / "ud" / f"{name}.test.conllu.gz"
    if not path.is_file():
        pytest.skip(f"treebank not found at {path}")
    found = Treebank(list(read_conllu(path))).scores()
    for system, predict, printed in (("L", next_word, left), ("R", word_before, right)):
        expected = independent_scores(path, predict)
        assert shares(found[system]) == pytest.approx(expected, abs=1e-9)
        assert shares(found[system])[:2] == pytest.approx(printed, abs=2.5)


# --- words that are removed --------------------------------------------------------------------------------------


def climb(heads, removed):
    """The same as `remove` for one sentence, one word and one step at a time."""
    stay = [word for word in range(len(heads)) if not removed[word]]
    result = []
    for word in stay:
        seen = set()
        above = heads[word]
        while above != -1 and removed[above]:
            if above in seen:
                above = -1
                break
            seen.add(above)
            above = heads[above]
        result.append(stay.index(above) if above != -1 else -1)
    return result


@st.composite
def corpora(draw, cycles=False):
    """Heads of several sentences, empty ones too, and which words are removed."""
    if cycles:  # any heads at all
        sizes = draw(st.lists(st.integers(0, 7), max_size=4))
        trees = [[draw(st.integers(-1, size - 1)) for _ in range(size)] for size in sizes]
    else:
        trees = draw(st.lists(forests(min_words=0), max_size=4))
    removed = [draw(st.lists(st.booleans(), min_size=len(tree), max_size=len(tree))) for tree in trees]
    return trees, removed


@given(corpora() | corpora(cycles=True))
def test_removal_is_that_of_each_sentence_by_itself(corpus):
    trees, removed = corpus
    heads, _ = flatten(trees)
    flat_removed = np.array([flag for flags in removed for flag in flags], dtype=bool)
    expected, _ = flatten([climb(*pair) for pair in zip(trees, removed, strict=True)])
    assert remove(heads, flat_removed).tolist() == expected.tolist()


def test_branching():
    lengths = np.array([3, 0, 1, 2])
    assert left_branching(lengths).tolist() == [1, 2, -1, -1, 5, -1]
    assert right_branching(lengths).tolist() == [-1, 0, 1, -1, -1, 4]
    for branching in (left_branching, right_branching):
        assert branching(lengths[:0]).tolist() == branching(lengths[1:2]).tolist() == []


def test_long_chains_of_removed_words():
    heads = np.array([*range(1, 100), -1, 0])
    removed = np.array([True] * 99 + [False, False])
    assert remove(heads, removed).tolist() == [-1, 0]
