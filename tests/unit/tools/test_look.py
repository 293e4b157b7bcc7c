"""fairseq-syntax look: trees are those of the model's own scores, and every picture is of what the model computes."""

import functools
import gzip
import io
import re
from functools import partial
from pathlib import Path

import numpy as np
import programs
import pytest
import torch
from corpora import Item, write_split
from fairseq import checkpoint_utils
from integration import commands
from matplotlib import pyplot as plt
from oracles.dependency_trees import all_trees, is_projective, tree_score

from fairseq_syntax.tools import look, sentence_pictures
from fairseq_syntax.tools.latent_trees import CutSentence, TreeInducer
from fairseq_syntax.tools.loaded_model import encode_line, load_model
from fairseq_syntax.trees.conllu import Sentence, format_sentence, read_conllu

refused = partial(programs.refused, look)


@pytest.fixture(scope="module")
def checkpoint(trained):
    return trained("sa_nmt_shared_tiny")


@pytest.fixture
def run(latent, checkpoint, tmp_path, capsys):
    """Function: options -> the trees that the program writes; what it says is in `run.said`."""

    def call(*options, data=latent.data, path=checkpoint):
        given = [data, "--path", path, "--cpu", "--output", tmp_path / "out.conllu", "--overwrite", *options]
        status = look.main([*map(str, given)])
        call.said = capsys.readouterr().err
        assert status == 0, call.said
        return [(tree.forms, tree.heads) for tree in read_conllu(tmp_path / "out.conllu")]

    return call


# --- the trees ----------------------------------------------------------------------------------------------------


@functools.cache
def by_fairseq(checkpoint, data):
    """(model, task) of a checkpoint."""
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], {"data": str(data)})
    return model.eval(), task


def word_scores(checkpoint, data, item, names):
    """Scores between words, nested lists, of one sentence by itself, its pieces summed one by one."""
    model, task = by_fairseq(checkpoint, data)
    tokens = task.source_dictionary.encode_line(item.text(), add_if_not_exist=False).long()[None]
    found = model.latent_heads(tokens, torch.tensor([tokens.shape[1]]))
    arcs, roots = (found[name][0].double().tolist() for name in names)
    words, of = len(item.pieces), item.word_of_token[:-1]
    of_words = [[0.0] * words for _ in range(words)]
    of_roots = [0.0] * words
    for d, word in enumerate(of):
        for h, head in enumerate(of):
            value = roots[d] if d == h else arcs[d][h]
            if word == head:  # eq. 24 sums the whole block, where the paper has the root on the diagonal
                of_roots[word] += value
            else:
                of_words[word][head] += value
    return of_words, of_roots


SCORES, MARGINALS = ("arc_scores", "root_scores"), ("arc_marginals", "root_marginals")


@pytest.mark.parametrize(
    ("arch", "options", "names", "allowed"),
    [
        ("sa_nmt_shared_tiny", [], SCORES, lambda heads: True),
        ("sa_nmt_hard_tiny", ["--evidence", "marginals"], MARGINALS, lambda heads: True),
        ("fa_nmt_tiny", ["--decoder", "eisner"], SCORES, is_projective),
    ],
    ids=["mst", "marginals", "eisner"],
)
def test_trees_are_the_best_of_all(latent, trained, run, arch, options, names, allowed):
    path = trained(arch)
    found = run("--input", f"{latent.text}.en", *options, path=path)
    assert [forms for forms, _ in found] == [item.words for item in latent.items]
    short = [i for i, item in enumerate(latent.items) if len(item.pieces) <= 5]
    assert any(len(latent.items[i].word_of_token) > len(latent.items[i].pieces) + 1 for i in short), "pieces to sum"
    for i in short:
        arcs, roots = word_scores(path, latent.data, latent.items[i], names)
        candidates = [tree for tree in all_trees(len(roots)) if allowed(tree)]
        best = max(tree_score(tree, arcs, roots) for tree in candidates)
        assert tuple(found[i][1]) in candidates
        assert tree_score(found[i][1], arcs, roots) == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("side", [[], ["--left-pad-source"]], ids=["right", "left"])
def test_batches_and_padding_do_not_change_trees(latent, trained, run, side):
    path = trained("sa_nmt_shared_tiny", *side)
    text = ["--input", f"{latent.text}.en"]
    one_by_one = run(*text, "--batch-size", "1", path=path)
    assert run(*text, "--batch-size", "5", path=path) == one_by_one
    assert len({tuple(heads) for _, heads in one_by_one}) > 5


# --- where text comes from ----------------------------------------------------------------------------------------


def test_text_treebank_and_split_are_the_same(latent, run, tmp_path, monkeypatch):
    text = Path(f"{latent.text}.en")
    expected = run("--input", text)
    assert "unknown" not in run.said
    with gzip.open(tmp_path / "text.gz", "wt") as packed:
        packed.write(text.read_text())
    (tmp_path / "marked").write_text("".join(item.text("sentencepiece") + "\n" for item in latent.items))
    for source in (tmp_path / "text.gz", f"{text}.conllu"):
        assert run("--input", source) == expected
    found = run("--input", tmp_path / "marked", "--subword-type", "sentencepiece")
    assert [forms for forms, _ in found] == [forms for forms, _ in expected]
    for data in (latent.data, latent.plain):
        assert run("--subset", "test", data=data) == expected
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.read_bytes())))
    assert run("--input", "-") == expected


def test_lines_of_all_sorts(latent, run, tmp_path):
    """Empty ones, and words in capitals or spelled like signs, of which the dictionary has none."""
    expected = run("--input", f"{latent.text}.en")[:3]
    lines = (latent.text.parent / "test.en").read_text().splitlines()[:3]
    odd, plain = ["the </s> dog .", "<pad> dog", "</s>"], ["the <unk> dog .", "<unk> dog", "<unk>"]
    text = tmp_path / "lines.en"
    text.write_text("\n".join(["", *lines, " ", lines[0].upper(), *odd, *plain, ""]))
    found = run("--input", text)
    assert [found[0], found[4]] == [([], [])] * 2 and found[1:4] == expected
    assert found[5] == ([form.upper() for form in expected[0][0]], expected[0][1])
    assert [forms for forms, _ in found[6:9]] == [line.split() for line in odd]
    assert [heads for _, heads in found[6:9]] == [heads for _, heads in found[9:]]


def test_unknown_pieces_of_a_split_keep_their_words(latent, run, tmp_path):
    # z@@ is unknown, so the dictionary has no sign that the word goes on
    write_split(tmp_path / "text" / "test", [Item([["z", "dog"], ["the"]], [1, -1])])
    dictionaries = ["--srcdict", latent.data / "dict.en.txt", "--tgtdict", latent.data / "dict.de.txt"]
    tags = ["--syntax-dicts", latent.data]
    data = commands.binarize({"test": tmp_path / "text" / "test"}, tmp_path / "bin", *dictionaries, *tags)
    ((forms, heads),) = run("--subset", "test", data=data)
    assert forms[0].startswith("<unk>") and len(forms) == len(heads) == 2


# --- attention and gates ------------------------------------------------------------------------------------------


@pytest.fixture
def draw(latent, trained, tmp_path, capsys, monkeypatch):
    """Function: architecture, options -> the figure, which is not saved."""
    drawn = []
    keep = "fairseq_syntax.pictures.figures.save_figure"
    monkeypatch.setattr(keep, lambda figure, path: drawn.append(figure))

    def call(arch, *options):
        arguments = [latent.data, "--path", trained(arch), "--cpu", "--draw", tmp_path / "map.png"]
        assert look.main([*map(str, arguments), "--subset", "test", *options]) == 0, capsys.readouterr().err
        return drawn[-1]

    yield call
    plt.close("all")


def labels(axis):
    return [[label.get_text() for label in a.get_ticklabels()] for a in (axis.yaxis, axis.xaxis)]


def image_of(axis):
    return np.asarray(axis.images[0].get_array())


def found_by(checkpoint, data, sentence):
    """The model, its batch of one sentence of the test set, and what its decoder finds with the reference."""
    model, task = by_fairseq(checkpoint, data)
    task.load_dataset("test")
    dataset = task.dataset("test")
    batch = dataset.collater([dataset[sentence]])
    with torch.no_grad():
        return model, batch, model(**batch["net_input"])[1]


@torch.no_grad()
def of_pieces(kind, checkpoint, data, sentence):
    """Attention between the tokens of a sentence of the test set, as the model returns it."""
    model, batch, extra = found_by(checkpoint, data, sentence)
    net_input = batch["net_input"]
    if kind != "heads":
        extra = extra if isinstance(extra, dict) else {"attn": [extra]}
        return extra["attn"][0][0] if kind == "translation" else extra["syntax_attn"][0]
    if hasattr(model, "latent_heads"):
        heads = model.latent_heads(net_input["src_tokens"], net_input["src_lengths"])
        return torch.cat((heads["root_marginals"][0, :-1, None], heads["arc_marginals"][0, :-1, :-1]), dim=1)
    encoded = model.encoder(net_input["src_tokens"], src_syntax=net_input["src_syntax"])
    return encoded["syntax"][0]["attention"][0, 0]


@pytest.mark.parametrize(
    ("arch", "kind"),
    [
        ("pascal_transformer_tiny", "heads"),
        ("sa_nmt_tiny", "heads"),
        ("sa_nmt_tiny", "syntax"),
        ("transformer_tiny", "translation"),
        ("lstm", "translation"),
    ],
)
def test_attention_between_words(latent, draw, trained, arch, kind):
    """Summed over the pieces of the attended word, and averaged over those of the attending word, one by one."""
    item = next(item for item in latent.items if len(item.words) < len(item.text().split()))
    number, columns, names = latent.items.index(item), item.word_of_token, [*item.words, "</s>"]
    target = (latent.text.parent / "test.de").read_text().splitlines()[number]
    rows = [*np.cumsum([0, *(not piece.endswith("@@") for piece in target.split())]).tolist()]
    parents = [*(i if head < 0 else head for i, head in enumerate(item.heads)), len(item.words)]
    if kind == "heads":
        rows = columns
        if arch == "sa_nmt_tiny":
            rows, columns = rows[:-1], [0, *(word + 1 for word in rows[:-1])]
            names, parents = ["ROOT", *item.words], [head + 1 for head in item.heads]
    pieces = of_pieces(kind, trained(arch), latent.data, number)
    axis = draw(arch, "--sentence", str(number), "--kind", kind).axes[0]
    expected = np.zeros((rows[-1] + 1, columns[-1] + 1))
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            if names[0] == "ROOT" and column == row + 1:
                column = 0  # arcs between the pieces of a word
            expected[row, column] += float(pieces[i, j]) / rows.count(row)
    assert image_of(axis) == pytest.approx(expected, abs=1e-5)
    assert labels(axis)[1] == names
    framed = [int(patch.get_x() + 0.5) for patch in axis.patches]
    assert framed == parents or kind != "heads"


def test_norms_of_the_gate(latent, draw, trained):
    figure = draw("sa_nmt_shared_tiny", "--kind", "gate", "--sentence", "2")
    texts = figure.axes[0].texts
    source = [text.get_text() for text in texts if (text.get_gid() or "").startswith("source")]
    assert source == latent.items[2].text().split()
    target = (latent.text.parent / "test.de").read_text().splitlines()[2].split()
    tokens = [text for text in texts if not text.get_gid()]
    assert [text.get_text() for text in tokens] == [*target, "</s>"]
    norms = found_by(trained("sa_nmt_shared_tiny"), latent.data, 2)[2]["gate_norm"][0]
    assert [text.get_weight() for text in tokens].index("bold") == int(norms.argmax())
    assert figure.axes[1].get_xlim() == pytest.approx((0, float(norms.max())), abs=1e-4)


def test_syntactic_annotations(latent, draw, checkpoint):
    axis = draw("sa_nmt_shared_tiny", "--kind", "annotations", "--sentence", "2").axes[0]
    model, batch, _ = found_by(checkpoint, latent.data, 2)
    with torch.no_grad():
        source = model.encoder.source(batch["net_input"]["src_tokens"])
        expected = model.encoder.memory.head_selection(model.encoder.annotate(source)[0], source)[0]
    assert image_of(axis) == pytest.approx(expected.numpy(), abs=1e-4)
    assert labels(axis)[0] == [*latent.items[2].text().split(), "</s>"]


@pytest.mark.parametrize("arch", ["local_att_tiny", "global_plus_sdatt_tiny"])
def test_predicted_positions(latent, draw, trained, arch):
    figure = draw(arch, "--kind", "position", "--sentence", "2")
    (axis,) = (axis for axis in figure.axes if axis.images)
    _, _, extra = found_by(trained(arch), latent.data, 2)
    weights = extra.get("syntax_attn", extra["attn"][0])[0]
    assert image_of(axis) == pytest.approx(weights.numpy(), abs=1e-5)
    # a token owns what is around the middle of its cell
    (line,) = axis.lines
    assert line.get_xdata() == pytest.approx(extra["position"][0].numpy() - 0.5, abs=1e-4)


@pytest.mark.parametrize("kind", ["heads", "gate"])
def test_numbers_that_are_nan_are_refused(latent, checkpoint, tmp_path, capsys, monkeypatch, kind):
    loaded = load_model(str(checkpoint), str(latent.data), True)
    # as in half precision: finite weights, infinite numbers
    loaded.model.encoder.embed_tokens.register_forward_hook(lambda _, inputs, output: output * float("nan"))
    monkeypatch.setattr("fairseq_syntax.tools.loaded_model.load_model", lambda *arguments: loaded)
    arguments = [latent.data, "--path", checkpoint, "--cpu", "--draw", tmp_path / "map.png", "--kind", kind]
    assert "NaN" in refused(capsys, *arguments, "--subset", "test")
    assert list(tmp_path.iterdir()) == []


# --- graphs -------------------------------------------------------------------------------------------------------


def graph_by_hand(checkpoint, data, item):
    """(J, J + 1) probabilities, ROOT first, of one sentence by itself: those of a word's pieces, averaged."""
    arcs, roots = word_scores(checkpoint, data, item, MARGINALS)
    return np.column_stack((roots, arcs)) / [[len(pieces)] for pieces in item.pieces]


@pytest.mark.parametrize("arch", ["lgp_tiny", "sa_nmt_shared_tiny"])
def test_graphs_are_those_of_the_pieces(latent, trained, arch):
    """Summed one by one; whatever is in the same batch."""
    sources = [
        CutSentence(item.text().split(), item.word_of_token[:-1], len(item.words), "here") for item in latent.items
    ]
    inducer = TreeInducer(load_model(str(trained(arch)), str(latent.data), True), batch_size=5)
    for found, item in zip(inducer.graphs(sources), latent.items, strict=True):
        assert found.probabilities == pytest.approx(graph_by_hand(trained(arch), latent.data, item), abs=2e-4)


def test_labels_are_the_parsers(treebank, trained_parser, latent, trained, tmp_path, monkeypatch):
    parser, shown = trained_parser(), []
    monkeypatch.setattr(sentence_pictures, "draw_graph", lambda *graph, **named: shown.append((*graph, named)))
    monkeypatch.setattr("fairseq_syntax.pictures.figures.save_figure", lambda figure, path: None)
    (sentence, *_) = read_conllu(treebank / "valid.conllu")

    def draw(data, path, *options):
        given = [data, "--path", path, "--cpu", "--kind", "graph", "--draw", tmp_path / "a.svg", *options]
        assert look.main([*map(str, given)]) == 0
        return shown.pop()

    words, found, named = draw(treebank, parser, "--input", treebank / "valid.conllu")
    model, task = by_fairseq(parser, treebank)
    ids = torch.tensor([[*map(task.source_dictionary.index, sentence.forms), task.source_dictionary.eos()]])
    best = model(ids, torch.tensor([ids.shape[1]])).label_log_probs.argmax(2)[0, :-1].tolist()
    item = Item([[word] for word in words], sentence.heads)
    assert words == sentence.forms and found == pytest.approx(graph_by_hand(parser, treebank, item), abs=2e-4)
    assert named["labels"] == [model.labels[i] for i in best]
    assert (named["gold"], named["tags"]) == (sentence.heads, sentence.upos)
    assert named["gold_labels"] == sentence.deprels and "nsubj:outer" in sentence.deprels
    # a translator's labels have no names
    words, _, named = draw(latent.data, trained("lgp_tiny"), "--subset", "test", "--sentence", "2")
    item = latent.items[2]
    assert (words, named["labels"], named["gold"], named["tags"]) == (item.words, None, item.heads, item.upos)


def test_labels_of_words_in_pieces(treebank, trained_parser):
    """They are those of the sum, for which pieces are made by hand."""
    inducer = TreeInducer(load_model(str(trained_parser()), str(treebank), True))
    pieces = ["the", "big", "dog", "sees", "the", "tree", "."]
    source = CutSentence(pieces, [0, 0, 1, 2, 3, 3, 4], 5, "here")
    inducer.graphs([source])
    model = inducer.loaded.model
    ids = encode_line(inducer.loaded.task.source_dictionary, " ".join(pieces))
    of_pieces = model(ids[None], torch.tensor([8])).label_log_probs[0].exp()
    words = ([0, 1], [2], [3], [4, 5], [6])
    expected = [model.labels[int(sum(of_pieces[i] for i in members).argmax())] for members in words]
    assert sentence_pictures.own_labels(inducer, source) == expected


# --- text, and all that a model has -------------------------------------------------------------------------------


def test_a_heat_map_of_too_many_constituents_is_left_out(tmp_path, capsys):
    (path := tmp_path / "trees.txt").write_text(
        f'TS-0\t(X (X b ) )\nTT-0\t(X {"(X a ) " * 101})\nTA-0\t{{"attention": {[[0.5, 0.5]] * 101}}}\n'
    )
    assert look.main(["--constituents", str(path), "--draw", str(tmp_path / "pictures")]) == 0
    assert [picture.name for picture in (tmp_path / "pictures").iterdir()] == ["0-trees.svg"]
    assert "sentence 0: a heat map of 101 rows and 2 columns cannot be read" in capsys.readouterr().err


def test_a_text_is_drawn_with_its_own_translation(latent, trained, tmp_path, caplog):
    """A heat map that cannot be read is left out: this model repeats itself for 200 words."""
    path, text = trained("sa_nmt_shared_tiny"), latent.items[2].text()
    loaded = load_model(str(path), str(latent.data), True)
    assert list(look.look(loaded, text)) == ["heads", "tree", "graph", "annotations", "gate"]
    assert "--kind translation: a heat map of 201 rows" in caplog.text
    with pytest.raises(ValueError, match="cannot be read; the most are 100; draw a shorter sentence"):
        look.look(loaded, text, ["translation"])
    plt.close("all")
    pictures = tmp_path / "new"
    given = [latent.data, "--path", path, "--cpu", "--text", text, "--draw", pictures]
    assert look.main([*map(str, given), "--max-len-a", "0", "--max-len-b", "90"]) == 0
    kinds = ["annotations", "gate", "graph", "heads", "translation", "tree"]
    assert sorted(path.name for path in pictures.iterdir()) == [f"0-{kind}.svg" for kind in kinds]
    arcs = re.findall(r'id="(arc-\d+)"', (pictures / "0-tree.svg").read_text())
    assert sorted(arcs) == [f"arc-{i}" for i in range(len(latent.items[2].words))]


def test_a_tree_of_cased_words_fits_a_model_of_lower_case(tmp_path):
    tree = Sentence(["The", "dog", "slept", "."], [1, 2, -1, 2], ["det", "nsubj", "root", "punct"], ["_"] * 4)
    (tmp_path / "in.conllu").write_text(format_sentence(tree))
    given = ["--cpu", "--input", tmp_path / "in.conllu", "--sentence", "0", "--draw", tmp_path / "heads.svg"]
    assert look.main(["agreement-pascal", *map(str, given)]) == 0
