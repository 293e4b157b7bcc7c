"""The best tree against all trees, ties, forbidden arcs and extreme scores; longer sentences against networkx."""

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import dependency_trees as oracle
from oracles.forests import climbs_out
from strategies import projective_trees

from fairseq_syntax.trees.conllu import ROOT
from fairseq_syntax.trees.spanning import chu_liu_edmonds, eisner

INF = np.inf
KINDS = ["large", "ties", "forbidden", "likes roots", "tiny"]


def random_scores(seed, words, kind=""):
    random = np.random.default_rng(seed)
    arcs, roots = random.normal(size=(words, words)), random.normal(size=words)
    if kind == "large":
        arcs, roots = arcs * 1000, roots * 1000
    elif kind == "tiny":
        arcs, roots = arcs * 1e-6, roots * 1e-6
    elif kind == "ties":
        arcs, roots = random.integers(0, 3, (words, words)), random.integers(0, 3, words)
    elif kind == "forbidden":
        arcs[random.random((words, words)) < 0.35] = -INF
        roots[random.random(words) < 0.35] = -INF
    elif kind == "likes roots":
        roots = roots + 1e4
    return arcs, roots


def trees_of(words, projective):
    return [heads for heads in oracle.all_trees(words) if not projective or oracle.is_projective(heads)]


@pytest.mark.parametrize(("decode", "projective"), [(chu_liu_edmonds, False), (eisner, True)])
@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 10**6), words=st.integers(1, 5))
def test_best_of_all_trees(decode, projective, kind, seed, words):
    arcs, roots = random_scores(seed, words, kind)
    scores = {heads: oracle.tree_score(heads, arcs, roots) for heads in trees_of(words, projective)}
    best = max(scores.values())
    if best == -INF:
        with pytest.raises(ValueError, match="sentence 0: the scores forbid every"):
            decode([arcs], [roots])
    else:
        (heads,) = decode([arcs], [roots])
        assert scores[tuple(heads)] == pytest.approx(best, rel=1e-9, abs=1e-9)  # KeyError: no tree


@given(st.integers(0, 10**6), st.integers(2, 14))
def test_longer_sentences_with_networkx(seed, words):
    """Edmonds' algorithm there knows no single root: it is asked once for each root."""
    arcs, roots = random_scores(seed, words)
    best = -INF
    for root in range(words):
        graph = networkx.DiGraph()
        for dependent in range(words):
            for head in range(words):
                if head != dependent != root:
                    graph.add_edge(head, dependent, weight=arcs[dependent, head])
        tree = networkx.maximum_spanning_arborescence(graph, preserve_attrs=True)
        best = max(best, roots[root] + sum(data["weight"] for _, _, data in tree.edges(data=True)))
    (heads,) = chu_liu_edmonds([arcs], [roots])
    assert heads.count(ROOT) == 1 and all(climbs_out(heads, word) for word in range(words))
    assert oracle.tree_score(heads, arcs, roots) == pytest.approx(best)


@given(projective_trees(max_words=30), st.integers(0, 10**6))
def test_projective_tree_is_found_again(heads, seed):
    """A long projective tree whose arcs score highest is the best tree for all."""
    arcs, roots = random_scores(seed, len(heads))
    for word, head in enumerate(heads):
        (roots if head == ROOT else arcs[:, head])[word] += 20
    assert eisner([arcs], [roots]) == chu_liu_edmonds([arcs], [roots]) == [heads]


@pytest.mark.parametrize("decode", [chu_liu_edmonds, eisner])
def test_sentences_do_not_touch_each_other(decode):
    """More sentences than are computed at once, of all lengths, none among them."""
    sentences = [random_scores(seed, seed * 7 % 13) for seed in range(80)]
    arcs, roots = map(list, zip(*sentences, strict=True))
    before = [array.copy() for array in arcs]
    together = decode(arcs, roots)
    assert decode([], []) == []
    assert together == [decode([a], [r])[0] for a, r in sentences]
    assert [len(heads) for heads in together] == [len(r) for r in roots]
    assert all(np.array_equal(a, b) for a, b in zip(arcs, before, strict=True))


@pytest.mark.parametrize("decode", [chu_liu_edmonds, eisner])
def test_diagonal_is_ignored(decode):
    arcs, roots = random_scores(0, 6)
    expected = decode([arcs], [roots])
    for value in (1e6, INF, np.nan):
        np.fill_diagonal(arcs, value)
        assert decode([arcs], [roots]) == expected


@pytest.mark.parametrize("decode", [chu_liu_edmonds, eisner])
def test_wrong_input(decode):
    arcs, roots = random_scores(0, 3)
    with pytest.raises(ValueError, match=r"sentence 1: .*\(3, 2\).*expected"):
        decode([arcs, arcs[:, :2]], [roots, roots])
    with pytest.raises(ValueError, match="zip"):
        decode([arcs, arcs], [roots])
    for wrong in (np.nan, INF):
        broken = arcs.copy()
        broken[0, 2] = wrong
        with pytest.raises(ValueError, match="sentence 1: a score is NaN"):
            decode([arcs, broken], [roots, roots])
    forbidden = arcs.copy()
    forbidden[1] = -INF
    with pytest.raises(ValueError, match="sentence 1: the scores forbid every"):
        decode([arcs, forbidden], [roots, np.array([0.0, -INF, 0.0])])
