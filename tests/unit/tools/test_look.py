"""fairseq-syntax look: trees are those of the model's own scores, and every picture is of what the model computes."""

import functools
import gzip
import io
import itertools
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

from fairseq_syntax.tools import look, views
from fairseq_syntax.tools.latent_trees import CutSentence, TreeInducer
from fairseq_syntax.tools.models import encode_line, load
from fairseq_syntax.trees.conllu import read_conllu

refused = partial(programs.refused, look)


def found_in(path):
    return [(tree.forms, tree.heads) for tree in read_conllu(path)]


@pytest.fixture(scope="module")
def checkpoint(trained):
    return trained("sa_nmt_shared_tiny")


@pytest.fixture
def run(latent, checkpoint, tmp_path, capsys):
    """Function: options -> the trees that the program writes; what it says is in `run.said`."""
    numbers = itertools.count()

    def call(*options, data=latent.data, path=checkpoint):
        output = tmp_path / f"{next(numbers)}.conllu"
        status = look.main([str(data), "--path", str(path), "--cpu", "--output", str(output), *map(str, options)])
        call.said = capsys.readouterr().err
        assert status == 0, call.said
        call.output = output
        return found_in(output)

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
    assert run(*text, path=path) == one_by_one
    assert len({tuple(heads) for _, heads in one_by_one}) > 5


# --- where text comes from ----------------------------------------------------------------------------------------


def test_text_treebank_and_split_are_the_same(latent, run, tmp_path, monkeypatch, capsys):
    text = Path(f"{latent.text}.en")
    expected = run("--input", text)
    assert "unknown" not in run.said
    with gzip.open(tmp_path / "text.gz", "wt") as packed:
        packed.write(text.read_text())
    assert run("--input", tmp_path / "text.gz") == expected
    assert run("--input", f"{text}.conllu") == expected
    assert run("--subset", "test") == expected
    assert run("--subset", "test", data=latent.plain) == expected
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.read_bytes())))
    assert run("--input", "-") == expected


def test_empty_lines_are_empty_sentences(latent, run, tmp_path):
    lines = (latent.text.parent / "test.en").read_text().splitlines()[:3]
    text = tmp_path / "gaps.en"
    text.write_text(f"\n{lines[0]}\n\n \n{lines[1]}\n{lines[2]}\n\n")
    found = run("--input", text)
    assert [bool(forms) for forms, _ in found] == [False, True, False, False, True, True, False]
    assert [tree for tree in found if tree[0]] == run("--input", f"{latent.text}.en")[:3]
    text.write_text("")
    assert run("--input", text) == []


def test_case_is_kept_in_the_output_only(latent, run, tmp_path):
    """The dictionary has no capitals."""
    expected = run("--input", f"{latent.text}.en")
    shouted = tmp_path / "shouted.en"
    shouted.write_text((latent.text.parent / "test.en").read_text().upper())
    found = run("--input", shouted)
    assert [heads for _, heads in found] == [heads for _, heads in expected]
    assert [forms for forms, _ in found] == [[word.upper() for word in forms] for forms, _ in expected]


TREEBANK = """\
# sent_id = a
# text = du dog
1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_
1\tthe\tthe\tDET\t_\t_\t2\tdet\t_\t_
2\tdog\tdog\tNOUN\t_\t_\t0\troot\t_\t_
2.1\tsees\t_\tVERB\t_\t_\t_\t_\t_\t_
3\truns\trun\tVERB\t_\t_\t2\tacl\t_\t_

"""


def test_treebanks_keep_what_is_not_the_tree(latent, run, tmp_path):
    path = tmp_path / "bank.conllu"
    path.write_text(TREEBANK)
    ((_, heads),) = run("--input", path)
    (tree,) = read_conllu(run.output)
    assert (tree.comments, tree.ranges) == (["# sent_id = a", "# text = du dog"], [(0, 1, "du")])
    assert (tree.forms, tree.upos) == (["the", "dog", "runs"], ["DET", "NOUN", "VERB"])
    assert tree.deprels == ["root" if head < 0 else "dep" for head in heads] and "root" in tree.deprels
    ((forms, _),) = run("--input", path, "--collapse-ranges")
    assert forms == ["du", "runs"]


def test_sentencepiece(latent, run, tmp_path):
    marked = tmp_path / "marked.en"
    marked.write_text("".join(item.text("sentencepiece") + "\n" for item in latent.items))
    found = run("--input", marked, "--subword-type", "sentencepiece")
    assert [forms for forms, _ in found] == [item.words for item in latent.items]


def test_unknown_pieces_of_a_split_keep_their_words(latent, checkpoint, run, tmp_path):
    # z@@ is unknown, so the dictionary has no sign that the word goes on
    write_split(tmp_path / "text" / "test", [Item([["z", "dog"], ["the"]], [1, -1])])
    dictionaries = ["--srcdict", latent.data / "dict.en.txt", "--tgtdict", latent.data / "dict.de.txt"]
    tags = ["--syntax-dicts", latent.data]
    data = commands.binarize({"test": tmp_path / "text" / "test"}, tmp_path / "bin", *dictionaries, *tags)
    ((forms, heads),) = run("--subset", "test", data=data)
    assert forms[0].startswith("<unk>") and len(forms) == len(heads) == 2


def test_signs_of_the_dictionary_in_a_text_are_unknown_words(run, tmp_path):
    lines = ["the </s> dog .", "<pad> dog", "</s>", "the <s> <pad>", "the dog ."]
    given, unknown = tmp_path / "signs.en", tmp_path / "unknown.en"
    given.write_text("".join(f"{line}\n" for line in lines))
    unknown.write_text(re.sub("<[^>]*>", "<unk>", given.read_text()))
    found = run("--input", given)
    assert [forms for forms, _ in found] == [line.split() for line in lines]
    assert [heads for _, heads in found] == [heads for _, heads in run("--input", unknown)]


# --- pictures -----------------------------------------------------------------------------------------------------


def test_a_picture_alone(latent, checkpoint, tmp_path, capsys):
    picture = tmp_path / "tree.svg"
    source = [latent.data, "--path", checkpoint, "--cpu", "--input", f"{latent.text}.en.conllu"]
    source += ["--kind", "tree"]
    assert look.main([str(a) for a in [*source, "--draw", picture, "--sentence", "2"]]) == 0
    assert capsys.readouterr().out == ""
    assert [path.name for path in tmp_path.iterdir()] == [picture.name]
    names = re.findall(r'id="((?:arc|gold)-\d+)"', picture.read_text())
    words = range(len(latent.items[2].words))
    assert sorted(names) == sorted(f"{kind}-{i}" for kind in ("arc", "gold") for i in words)


# --- attention and gates ---------------------------------------------------------------------------------------------


@pytest.fixture
def draw(latent, trained, tmp_path, capsys, monkeypatch):
    """Function: architecture, options -> the figure, which is not saved."""
    drawn = []
    keep = "fairseq_syntax.pictures.figures.save_figure"
    monkeypatch.setattr(keep, lambda figure, path: drawn.append(figure))

    def call(arch, *options, training=()):
        arguments = [latent.data, "--path", trained(arch, *training), "--cpu", "--draw", tmp_path / "map.png"]
        assert look.main([*map(str, arguments), "--subset", "test", *options]) == 0, capsys.readouterr().err
        return drawn[-1]

    yield call
    plt.close("all")


def labels(axis):
    return [[label.get_text() for label in a.get_ticklabels()] for a in (axis.yaxis, axis.xaxis)]


def test_heads_of_latent_trees(latent, draw):
    number = next(i for i, item in enumerate(latent.items) if len(item.words) == len(item.text().split()) > 2)
    axis, words = draw("sa_nmt_shared_tiny", "--sentence", str(number)).axes[0], latent.items[number].words
    assert labels(axis) == [words, ["ROOT", *words]]
    weights = image_of(axis)
    assert weights.shape == (len(words), len(words) + 1)
    assert weights.sum(1) == pytest.approx(1, abs=1e-4)
    assert weights[:, 0].sum() == pytest.approx(1, abs=1e-4), "one root"


def of_pieces(arch, kind, checkpoint, data, sentence):
    """Attention between the tokens of a sentence of the test set, as the model returns it."""
    model, batch, extra = found_by(checkpoint, data, sentence)
    net_input = batch["net_input"]
    with torch.no_grad():
        if kind != "heads":
            extra = extra if isinstance(extra, dict) else {"attn": [extra]}
            return extra["attn"][0][0] if kind == "translation" else extra["syntax_attn"][0]
        if arch == "pascal_transformer_tiny":
            return model.encoder(net_input["src_tokens"], src_syntax=net_input["src_syntax"])["syntax"][0]["attention"][
                0, 0
            ]
        heads = model.latent_heads(net_input["src_tokens"], net_input["src_lengths"])
    return torch.cat((heads["root_marginals"][0, :-1, None], heads["arc_marginals"][0, :-1, :-1]), dim=1)


@pytest.mark.parametrize(
    ("arch", "kind"),
    [
        ("pascal_transformer_tiny", "heads"),
        ("sa_nmt_tiny", "heads"),
        ("sa_nmt_tiny", "translation"),
        ("sa_nmt_tiny", "syntax"),
        ("transformer_tiny", "translation"),
        ("lstm", "translation"),
    ],
)
def test_attention_between_words(latent, draw, trained, arch, kind):
    """Summed over the pieces of the attended word, and averaged over those of the attending word, one by one."""
    item = next(item for item in latent.items if len(item.words) < len(item.text().split()))
    number, words, source = latent.items.index(item), [*item.words, "</s>"], item.word_of_token
    target = (latent.text.parent / "test.de").read_text().splitlines()[number]
    target = [*np.cumsum([0, *(not piece.endswith("@@") for piece in target.split())]).tolist()]
    rows, columns, names = target, source, words
    if kind == "heads":
        rows = source
        if arch != "pascal_transformer_tiny":
            rows, columns, names = source[:-1], [0, *(word + 1 for word in source[:-1])], ["ROOT", *item.words]
    # fairseq's LSTM has no small size
    sizes = (
        "encoder-embed-dim",
        "encoder-hidden-size",
        "decoder-embed-dim",
        "decoder-hidden-size",
        "decoder-out-embed-dim",
    )
    small = [word for size in sizes for word in (f"--{size}", "8")] if arch == "lstm" else []
    pieces = of_pieces(arch, kind, trained(arch, *small), latent.data, number)
    axis = draw(arch, "--sentence", str(number), "--kind", kind, training=small).axes[0]
    expected = np.zeros((rows[-1] + 1, columns[-1] + 1))
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            if names[0] == "ROOT" and column == row + 1:
                column = 0  # arcs between the pieces of a word
            expected[row, column] += float(pieces[i, j]) / rows.count(row)
    assert image_of(axis) == pytest.approx(expected, abs=1e-5)
    assert labels(axis)[1] == names
    framed = [int(patch.get_x() + 0.5) for patch in axis.patches]
    parents = [*(i if head < 0 else head for i, head in enumerate(item.heads)), len(item.words)]
    if kind == "heads":
        assert framed == (parents if arch == "pascal_transformer_tiny" else [head + 1 for head in item.heads])


def test_planted_heads_are_drawn_with_and_without_a_tree(tmp_path):
    bank = tmp_path / "bank.conllu"
    bank.write_text(TREEBANK)
    (tree,) = read_conllu(bank)
    for sentence, frames in ((" ".join(tree.forms), 0), (tree, len(tree) + 1)):
        axis = look.look("agreement-planted", sentence, kinds=["heads"])["heads"].axes[0]
        assert len(axis.patches) == frames and axis.get_title() == "layer 2, head 1"
        assert image_of(axis).sum(1) == pytest.approx(1, abs=1e-4)
    plt.close("all")


def found_by(checkpoint, data, sentence):
    """The model, its batch of one sentence of the test set, and what its decoder finds with the reference."""
    model, task = by_fairseq(checkpoint, data)
    task.load_dataset("test")
    dataset = task.dataset("test")
    batch = dataset.collater([dataset[sentence]])
    with torch.no_grad():
        return model, batch, model(**batch["net_input"])[1]


def image_of(axis):
    return np.asarray(axis.images[0].get_array())


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
        encoder = model.encoder
        source = encoder.source(batch["net_input"]["src_tokens"])
        expected = encoder.memory.head_selection(encoder.annotate(source)[0], source)[0]
    assert image_of(axis) == pytest.approx(expected.numpy(), abs=1e-4)
    assert labels(axis)[0] == [*latent.items[2].text().split(), "</s>"]
    low, high = axis.images[0].get_clim()
    assert low == -high and high == pytest.approx(np.abs(image_of(axis)).max())


@pytest.mark.parametrize("arch", ["local_att_tiny", "global_plus_sdatt_tiny"])
def test_predicted_positions(latent, draw, trained, arch):
    figure = draw(arch, "--kind", "position", "--sentence", "2")
    (axis,) = (axis for axis in figure.axes if axis.images)
    _, _, extra = found_by(trained(arch), latent.data, 2)
    weights = extra.get("syntax_attn", extra["attn"][0])[0]
    assert image_of(axis) == pytest.approx(weights.numpy(), abs=1e-5)
    (line,) = axis.lines
    assert line.get_gid() == "position-0"
    # a token owns what is around the middle of its cell
    assert line.get_xdata() == pytest.approx(extra["position"][0].numpy() - 0.5, abs=1e-4)
    assert list(line.get_ydata()) == list(range(len(image_of(axis))))
    assert image_of(axis).sum(1) == pytest.approx(1, abs=1e-4) or arch == "local_att_tiny"


@pytest.mark.parametrize("kind", ["heads", "gate"])
def test_numbers_that_are_nan_are_refused_whatever_they_come_of(
    latent, checkpoint, tmp_path, capsys, monkeypatch, kind
):
    loaded = load(str(checkpoint), str(latent.data), True)
    # as in half precision: finite weights, infinite numbers
    loaded.model.encoder.embed_tokens.register_forward_hook(lambda _, inputs, output: output * float("nan"))
    monkeypatch.setattr("fairseq_syntax.tools.models.load", lambda *arguments: loaded)
    arguments = [latent.data, "--path", checkpoint, "--cpu", "--draw", tmp_path / "map.png", "--kind", kind]
    assert "NaN" in refused(capsys, *arguments, "--subset", "test")
    assert list(tmp_path.iterdir()) == []


# --- graphs ----------------------------------------------------------------------------------------------------------


def graph_by_hand(checkpoint, data, item):
    """(J, J + 1) probabilities, ROOT first, of one sentence by itself: those of a word's pieces, averaged."""
    arcs, roots = word_scores(checkpoint, data, item, MARGINALS)
    rows = np.column_stack((roots, arcs)) / [[len(pieces)] for pieces in item.pieces]
    assert rows.sum(1) == pytest.approx(1, abs=1e-4)
    return rows


@pytest.mark.parametrize("arch", ["lgp_tiny", "sa_nmt_shared_tiny"])
def test_graphs_are_those_of_the_pieces(latent, trained, arch):
    """Summed one by one; whatever is in the same batch."""
    sources = [
        CutSentence(item.text().split(), item.word_of_token[:-1], len(item.words), "here") for item in latent.items
    ]
    inducer = TreeInducer(load(str(trained(arch)), str(latent.data), True), batch_size=5)
    for found, item in zip(inducer.graphs(sources), latent.items, strict=True):
        assert found.probabilities == pytest.approx(graph_by_hand(trained(arch), latent.data, item), abs=2e-4)


def test_labels_are_the_parsers(treebank, trained_parser, latent, trained, tmp_path, monkeypatch):
    parser, shown = trained_parser(), []
    monkeypatch.setattr(views, "draw_graph", lambda words, found, **named: shown.append((words, found, named)))
    monkeypatch.setattr("fairseq_syntax.pictures.figures.save_figure", lambda figure, path: None)
    (sentence, *_) = read_conllu(treebank / "valid.conllu")

    def draw(*arguments):
        assert look.main([*map(str, arguments), "--cpu", "--kind", "graph"]) == 0
        return shown.pop()

    words, found, named = draw(
        treebank, "--path", parser, "--input", treebank / "valid.conllu", "--draw", tmp_path / "a.svg"
    )
    model, task = by_fairseq(parser, treebank)
    ids = torch.tensor([[*map(task.source_dictionary.index, sentence.forms), task.source_dictionary.eos()]])
    best = model(ids, torch.tensor([ids.shape[1]])).label_log_probs.argmax(2)[0, :-1].tolist()
    assert words == sentence.forms
    item = Item([[word] for word in words], sentence.heads)
    assert found == pytest.approx(graph_by_hand(parser, treebank, item), abs=2e-4)
    assert named["labels"] == [model.labels[i] for i in best]
    assert (named["gold"], named["tags"]) == (sentence.heads, sentence.upos)
    assert named["gold_labels"] == sentence.deprels and "nsubj:outer" in sentence.deprels
    # a translator's labels have no names
    model = latent.data, "--path", trained("lgp_tiny")
    words, _, named = draw(*model, "--subset", "test", "--draw", tmp_path / "b.svg", "--sentence", "2")
    assert words == latent.items[2].words
    item = latent.items[2]
    assert (named["labels"], named["gold"], named["tags"]) == (None, item.heads, item.upos)


def test_labels_of_words_in_pieces(treebank, trained_parser):
    """They are those of the sum, for which pieces are made by hand."""
    inducer = TreeInducer(load(str(trained_parser()), str(treebank), True))
    pieces = ["the", "big", "dog", "sees", "the", "tree", "."]
    source = CutSentence(pieces, [0, 0, 1, 2, 3, 3, 4], 5, "here")
    inducer.graphs([source])
    model = inducer.loaded.model
    ids = encode_line(inducer.loaded.task.source_dictionary, " ".join(pieces))
    of_pieces = model(ids[None], torch.tensor([8])).label_log_probs[0].exp()
    expected = []
    for members in ([0, 1], [2], [3], [4, 5], [6]):
        expected.append(model.labels[int(sum(of_pieces[i] for i in members).argmax())])
    assert views.own_labels(inducer, source) == expected


# --- text, and all that a model has -------------------------------------------------------------------------------


def test_a_text_is_drawn_as_the_split_with_its_own_translation(latent, trained, tmp_path):
    model = [latent.data, "--path", trained("sa_nmt_shared_tiny"), "--cpu"]
    text = latent.items[2].text()
    search = ["--max-len-a", "0", "--max-len-b", "90"]
    assert look.main([*map(str, model), "--text", text, "--draw", str(tmp_path / "new"), *search]) == 0
    kinds = ["heads", "tree", "graph", "annotations", "translation", "gate"]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(f"0-{kind}.svg" for kind in kinds)
    loaded = load(str(trained("sa_nmt_shared_tiny")), str(latent.data), True)
    figures = look.look(loaded, text, max_len_a=0, max_len_b=90)
    assert list(figures) == kinds and labels(figures["translation"].axes[0])[1] == [*latent.items[2].words, "</s>"]
    plt.close("all")


def test_heat_maps_that_cannot_be_read_are_left_out(latent, trained, caplog):
    """This model repeats itself for 200 words."""
    loaded, text = load(str(trained("sa_nmt_shared_tiny")), str(latent.data), True), latent.items[2].text()
    figures = look.look(loaded, text)
    assert list(figures) == ["heads", "tree", "graph", "annotations", "gate"]
    assert "--kind translation: a heat map of 201 rows" in caplog.text
    with pytest.raises(ValueError, match="cannot be read; the most are 100; draw a shorter sentence"):
        look.look(loaded, text, ["translation"])
    plt.close("all")
