"""fairseq-syntax graph: its numbers are those of the model's own probabilities."""

import math
from argparse import Namespace

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils
from subword_nmt.apply_bpe import BPE

from fairseq_syntax.tools import attachment, graph
from fairseq_syntax.tools.latent_graphs import own_labels
from fairseq_syntax.tools.latent_trees import CutSentence, TreeInducer, load_with_trees
from fairseq_syntax.tools.sentences import encode_line
from fairseq_syntax.trees.conllu import ROOT, find_cycle, read_conllu

HEADER = ["sentence", "number", "word", "head_number", "head", "probability"]


@pytest.fixture
def parser(trained_parser):
    return trained_parser()


@pytest.fixture(params=["lgp_tiny", "sa_nmt_shared_tiny", "lgp_parser"])
def model(request, latent):
    """DATA, checkpoint, options that cut words, and a treebank of the model's words; the parser reads whole words."""
    if request.param == "lgp_parser":
        folder = request.getfixturevalue("treebank")
        return folder, request.getfixturevalue("parser"), [], folder / "valid.conllu"
    bpe = ["--bpe", "subword_nmt", "--bpe-codes", latent.codes]
    checkpoint = request.getfixturevalue("trained")(request.param)
    return latent.data, checkpoint, bpe, f"{latent.text}.en.conllu"


@pytest.fixture
def run(capsys):
    """Function: arguments -> stdout; stderr is in `run.said`."""

    def call(data, checkpoint, *options, main=graph.main):
        status = main([str(data), "--path", str(checkpoint), "--cpu", *map(str, options)])
        output = capsys.readouterr()
        call.said = output.err
        assert status == 0, output.err
        return output.out

    return call


def tables(text):
    return [[line.split("\t") for line in table.splitlines()] for table in text.split("\n\n")]


def graphs_by_hand(data, checkpoint, sentences, codes=None):
    """Rows of J + 1 probabilities, ROOT first, of each sentence by itself, its pieces summed one by one."""
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], {"data": str(data)})
    model.eval()
    graphs = []
    for words in sentences:
        pieces, of = [], []
        for number, word in enumerate(words):
            cut = codes.process_line(word).split() if codes is not None else [word]
            pieces += cut
            of += [number] * len(cut)
        dictionary = task.source_dictionary
        tokens = torch.tensor([[*map(dictionary.index, pieces), dictionary.eos()]])
        assert dictionary.unk() not in tokens.tolist()[0]
        found = model.latent_heads(tokens, torch.tensor([tokens.shape[1]]))
        arcs, roots = found["arc_marginals"][0].tolist(), found["root_marginals"][0].tolist()
        rows = [[0.0] * (len(words) + 1) for _ in words]
        for d, word in enumerate(of):
            share = 1 / of.count(word)
            rows[word][0] += share * roots[d]
            for h, head in enumerate(of):
                if h != d:
                    rows[word][0 if head == word else head + 1] += share * arcs[d][h]
        for row in rows:
            assert sum(row) == pytest.approx(1, abs=1e-4)
        graphs.append(rows)
    return graphs


@pytest.fixture
def by_hand(model, latent):
    """The treebank's sentences and their graphs."""
    data, checkpoint, bpe, gold = model
    sentences = list(read_conllu(gold))
    codes = None
    if bpe:
        with open(latent.codes, encoding="utf-8") as file:
            codes = BPE(file)
    return sentences, graphs_by_hand(data, checkpoint, [s.forms for s in sentences], codes)


# --- against a treebank -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "decoder"),
    [("lgp_tiny", "greedy"), ("sa_nmt_shared_tiny", "mst"), ("lgp_parser", "eisner")],
    indirect=["model"],
)
def test_the_tables(model, by_hand, run, decoder):
    data, checkpoint, bpe, gold = model
    options = [*bpe, "--gold", gold, "--decoder", decoder, "--evidence", "marginals"]
    summary, relations = tables(run(data, checkpoint, *options, "--format", "tsv", "--min-share", "0"))
    entropies, shares, tops, trees = [], [], [], []
    right = {}
    for sentence, rows in zip(*by_hand, strict=True):
        if all(tag == "PUNCT" for tag in sentence.upos):
            continue
        heads = [row.index(max(row)) - 1 for row in rows]
        trees.append(heads.count(ROOT) == 1 and find_cycle(heads) is None)
        for row in rows:
            entropies.append(-sum(p * math.log(p) for p in row if p > 0))
            tops.append(max(row))
            if len(rows) > 1:
                shares.append(entropies[-1] / math.log(len(rows)))
        for word, label in enumerate(sentence.deprels):
            if sentence.upos[word] != "PUNCT":
                right.setdefault(label.split(":")[0], []).append(heads[word] == sentence.heads[word])
    assert summary[0] == ["system", "entropy", "% of log N", "max p", "% trees", "UAS", "UAS no punct"]
    assert len(summary) == 2
    found = [float(value) for value in summary[1][1:]]
    assert found[0] == pytest.approx(sum(entropies) / len(entropies), abs=0.0011)
    assert found[1] == pytest.approx(100 * sum(shares) / len(shares), abs=0.11)
    assert found[2] == pytest.approx(sum(tops) / len(tops), abs=0.0011)
    assert found[3] == pytest.approx(100 * sum(trees) / len(trees), abs=0.051)
    # the other program decodes the same trees
    (scores,) = tables(run(data, checkpoint, *options, "--format", "tsv", main=attachment.main))
    assert summary[1][5] == scores[1][3]
    assert relations[0] == ["relation", "words", "right", "share", "recall"]
    assert {row[0]: int(row[1]) for row in relations[1:]} == {label: len(hits) for label, hits in right.items()}
    if decoder == "greedy":
        assert {row[0]: int(row[2]) for row in relations[1:]} == {label: sum(hits) for label, hits in right.items()}
        hits = [hit for of_label in right.values() for hit in of_label]
        assert found[5] == pytest.approx(100 * sum(hits) / len(hits), abs=0.051)


def test_what_is_shown_of_relations(treebank, parser, run):
    options = ["--gold", treebank / "valid.conllu", "--format", "tsv"]
    every = tables(run(treebank, parser, *options, "--min-share", "0"))[1]
    shown = tables(run(treebank, parser, *options, "--min-share", "15"))[1]
    assert "punct" not in {row[0] for row in every}
    assert "nsubj" in {row[0] for row in every}, "without its subtype"
    assert 1 < len(shown) < len(every)
    assert shown == [every[0], *(row for row in every[1:] if float(row[3]) >= 15)]


def test_ranges_and_sentences_without_trees(treebank, parser, run, tmp_path):
    path = tmp_path / "gold.conllu"
    path.write_text(
        "1-2\tthedog\t_\t_\t_\t_\t_\t_\t_\t_\n"
        "1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tdog\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_\n3\truns\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
        "1\tdog\t_\tNOUN\t_\t_\t_\t_\t_\t_\n\n1\t.\t_\tPUNCT\t_\t_\t0\troot\t_\t_\n\n"
    )
    run(treebank, parser, "--gold", path)
    assert "1 sentences, 3 words, 3 of them not punctuation; 2 sentences left out" in run.said
    run(treebank, parser, "--gold", path, "--collapse-ranges")
    assert "1 sentences, 2 words" in run.said


# --- arcs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "threshold"),
    [("lgp_tiny", "0.1"), ("sa_nmt_shared_tiny", "0.3"), ("lgp_parser", "0.1")],
    indirect=["model"],
)
def test_edges(model, by_hand, run, tmp_path, threshold):
    data, checkpoint, bpe, gold = model
    path = tmp_path / "new" / "edges.tsv"
    assert run(data, checkpoint, *bpe, "--input", gold, "--output", path, "--threshold", threshold) == ""
    header, *rows = [line.split("\t") for line in path.read_text().splitlines()]
    assert header == HEADER
    found = {(int(r[0]), int(r[1]), int(r[3])): r for r in rows}
    assert len(found) == len(rows)
    expected = {}
    for number, (sentence, graph_) in enumerate(zip(*by_hand, strict=True)):
        for word, row in enumerate(graph_):
            for head, probability in enumerate(row):
                expected[number, word + 1, head] = probability
                if (number, word + 1, head) in found:
                    said = found[number, word + 1, head]
                    assert said[2] == sentence.forms[word]
                    assert said[4] == ("ROOT" if head == 0 else sentence.forms[head - 1])
                    assert float(said[5]) == pytest.approx(probability, abs=2e-4)
    limit = float(threshold)
    assert {arc for arc, p in expected.items() if p > limit + 1e-4} <= set(found)
    assert set(found) <= {arc for arc, p in expected.items() if p > limit - 1e-4}
    assert run(data, checkpoint, *bpe, "--input", gold, "--output", "-", "--threshold", threshold) == path.read_text()
    one_by_one = run(
        data, checkpoint, *bpe, "--input", gold, "--output", "-", "--threshold", threshold, "--batch-size", 1
    )
    assert [line.split("\t")[:3] for line in one_by_one.splitlines()][1:] == [row[:3] for row in rows]


def test_text_and_split(latent, trained, run):
    model = latent.data, trained("lgp_tiny")
    expected = run(*model, "--input", f"{latent.text}.en", "--output", "-")
    assert len(expected.splitlines()) > 20
    assert run(*model, "--subset", "test", "--output", "-") == expected


def test_labels_are_the_parsers(treebank, parser, latent, trained, run, tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(
        "fairseq_syntax.tools.graph_drawing.draw_graph",
        lambda words, found, **named: shown.append((words, found, named)),
    )
    monkeypatch.setattr("fairseq_syntax.pictures.figures.save_figure", lambda figure, path: None)
    (sentence, *_) = read_conllu(treebank / "valid.conllu")
    run(treebank, parser, "--input", treebank / "valid.conllu", "--draw", tmp_path / "a.svg")
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(parser)], {"data": str(treebank)})
    ids = torch.tensor([[*map(task.source_dictionary.index, sentence.forms), task.source_dictionary.eos()]])
    best = model.eval()(ids, torch.tensor([ids.shape[1]])).label_log_probs.argmax(2)[0, :-1].tolist()
    words, found, named = shown.pop()
    assert words == sentence.forms
    assert found == pytest.approx(np.array(graphs_by_hand(treebank, parser, [words])[0]), abs=2e-4)
    assert named["labels"] == [model.labels[i] for i in best]
    assert (named["gold"], named["tags"]) == (sentence.heads, sentence.upos)
    assert named["gold_labels"] == sentence.deprels and "nsubj:outer" in sentence.deprels
    # a translator's labels have no names; plain text has no tree
    run(latent.data, trained("lgp_tiny"), "--subset", "test", "--draw", tmp_path / "b.svg", "--sentence", "2")
    words, _, named = shown.pop()
    assert words == latent.items[2].words
    assert (named["labels"], named["gold"], named["tags"]) == (None, None, None)


def test_labels_of_words_in_pieces(treebank, parser):
    """They are those of the sum, for which pieces are made by hand."""
    loaded = load_with_trees(Namespace(path=str(parser), data=str(treebank), cpu=True))
    inducer = TreeInducer(loaded, "mst", "scores", 4)
    pieces = ["the", "big", "dog", "sees", "the", "tree", "."]
    source = CutSentence(pieces, [0, 0, 1, 2, 3, 3, 4], 5, "here")
    inducer.graphs([source])
    model = inducer.loaded.model
    ids = encode_line(inducer.loaded.task.source_dictionary, " ".join(pieces))
    of_pieces = model(ids[None], torch.tensor([8])).label_log_probs[0].exp()
    expected = []
    for members in ([0, 1], [2], [3], [4, 5], [6]):
        expected.append(model.labels[int(sum(of_pieces[i] for i in members).argmax())])
    assert own_labels(inducer, source) == expected


# --- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("main", [graph.main, attachment.main], ids=["graph", "attachment"])
def test_words_are_cased_as_the_parser_was_trained(treebank, parser, run, tmp_path, main):
    """Words of another case are read by their spelling, but are unknown: this is said."""
    gold, upper = treebank / "valid.conllu", tmp_path / "upper.conllu"
    rows = [line.split("\t") for line in gold.read_text().splitlines()]
    upper.write_text("".join("\t".join([*row[:1], *map(str.upper, row[1:2]), *row[2:]]) + "\n" for row in rows))
    state = torch.load(parser, weights_only=True)
    state["cfg"]["task"]["lgp_lowercase"] = True
    torch.save(state, tmp_path / "lower.pt")
    expected = tables(run(treebank, parser, "--gold", gold, "--format", "tsv", main=main))
    assert "unknown to the model" not in run.said
    found = tables(run(treebank, tmp_path / "lower.pt", "--gold", upper, "--format", "tsv", main=main))
    assert found == expected and "unknown to the model" not in run.said
    assert tables(run(treebank, parser, "--gold", upper, "--format", "tsv", main=main)) != expected
    assert "are unknown to the model; the text must be cut and cased as in training" in run.said
