"""fairseq-syntax trees: the trees are those of the model's own scores."""

import gzip
import io
import itertools
import re
from functools import partial

import numpy as np
import programs
import pytest
import torch
from corpora import Item
from fairseq import checkpoint_utils
from oracles.dependency_trees import all_trees, is_projective, tree_score

from fairseq_syntax.tools import trees
from fairseq_syntax.trees.conllu import TreeFormatError, read_conllu

refused = partial(programs.refused, trees)


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
        status = trees.main([str(data), "--path", str(path), "--cpu", "--output", str(output), *map(str, options)])
        call.said = capsys.readouterr().err
        assert status == 0, call.said
        call.output = output
        return found_in(output)

    return call


# --- the trees ----------------------------------------------------------------------------------------------------


def word_scores(checkpoint, data, item, names):
    """Scores between words, nested lists, of one sentence by itself, its pieces summed one by one."""
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], {"data": str(data)})
    tokens = task.source_dictionary.encode_line(item.text(), add_if_not_exist=False).long()[None]
    found = model.eval().latent_heads(tokens, torch.tensor([tokens.shape[1]]))
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


def test_greedy_takes_the_best_head_of_every_word(latent, checkpoint, run):
    with pytest.raises(TreeFormatError, match="cycle"):  # which is what the program warns of
        run("--input", f"{latent.text}.en", "--decoder", "greedy")
    cyclic, total = map(int, re.search(r"(\d+) of (\d+) sentences have cycles", run.said).groups())
    assert 0 < cyclic < total == len(latent.items)
    blocks = run.output.read_text().split("\n\n")[:-1]
    for item, block in zip(latent.items, blocks, strict=True):
        arcs, roots = word_scores(checkpoint, latent.data, item, SCORES)
        for word, line in enumerate(block.split("\n")):
            scores = [roots[word], *arcs[word]]
            scores[word + 1] = -np.inf
            assert scores[int(line.split("\t")[6])] == pytest.approx(max(scores), abs=1e-4)


@pytest.mark.parametrize("side", [[], ["--left-pad-source"]], ids=["right", "left"])
def test_batches_and_padding_do_not_change_trees(latent, trained, run, side):
    path = trained("sa_nmt_shared_tiny", *side)
    text = ["--input", f"{latent.text}.en"]
    one_by_one = run(*text, "--batch-size", "1", path=path)
    assert run(*text, "--batch-size", "5", path=path) == one_by_one
    assert run(*text, path=path) == one_by_one
    assert len({tuple(heads) for _, heads in one_by_one}) > 5


# --- where text comes from ----------------------------------------------------------------------------------------


def test_text_pieces_words_treebank_and_split_are_the_same(latent, run, tmp_path, monkeypatch, capsys):
    expected = run("--input", f"{latent.text}.en")
    assert "unknown" not in run.said
    words = tmp_path / "words.en"
    words.write_text("".join(" ".join(item.words) + "\n" for item in latent.items))
    bpe = ["--bpe", "subword_nmt", "--bpe-codes", latent.codes]
    assert run("--input", words, *bpe) == expected
    with gzip.open(f"{words}.gz", "wt") as packed:
        packed.write(words.read_text())
    assert run("--input", f"{words}.gz", *bpe) == expected
    assert run("--input", f"{latent.text}.en.conllu", *bpe) == expected
    assert run("--subset", "test") == expected
    assert run("--subset", "test", data=latent.plain) == expected
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(words.read_bytes())))
    assert run("--input", "-", *bpe) == expected


def test_empty_lines_are_empty_sentences(latent, run, tmp_path):
    lines = (latent.text.parent / "test.en").read_text().splitlines()[:3]
    text = tmp_path / "gaps.en"
    text.write_text(f"\n{lines[0]}\n\n \n{lines[1]}\n{lines[2]}\n\n")
    found = run("--input", text)
    assert [bool(forms) for forms, _ in found] == [False, True, False, False, True, True, False]
    plain = tmp_path / "plain.en"
    plain.write_text("\n".join(lines) + "\n")
    assert [tree for tree in found if tree[0]] == run("--input", plain)
    empty = tmp_path / "empty.en"
    empty.write_text("")
    assert run("--input", empty) == []


def test_case_is_kept_in_the_output_only(latent, run, tmp_path):
    expected = run("--input", f"{latent.text}.en")
    shouted = tmp_path / "shouted.en"
    shouted.write_text((latent.text.parent / "test.en").read_text().upper())
    found = run("--input", shouted, "--lowercase")
    assert [heads for _, heads in found] == [heads for _, heads in expected]
    assert [forms for forms, _ in found] == [[word.upper() for word in forms] for forms, _ in expected]
    run("--input", shouted)
    assert re.search(r"\d+ of \d+ tokens \(\d+\.\d %\) are unknown .*--lowercase", run.said)


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
    bpe = ["--bpe", "subword_nmt", "--bpe-codes", latent.codes]
    ((forms, heads),) = run("--input", path, *bpe)
    (tree,) = read_conllu(run.output)
    assert (tree.comments, tree.ranges) == (["# sent_id = a", "# text = du dog"], [(0, 1, "du")])
    assert (tree.forms, tree.upos, tree.deprels) == (
        ["the", "dog", "runs"],
        ["DET", "NOUN", "VERB"],
        ["root" if head < 0 else "dep" for head in heads],
    )
    assert sorted(heads)[0] == -1 and len(forms) == 3
    ((forms, _),) = run("--input", path, *bpe, "--collapse-ranges")
    assert forms == ["du", "runs"]


def test_words_with_spaces_stay_words(latent, run, tmp_path):
    path = tmp_path / "bank.conllu"
    path.write_text(TREEBANK.replace("\tdog\tdog", "\tdog house\tdog"))
    ((forms, heads),) = run("--input", path, "--bpe", "subword_nmt", "--bpe-codes", latent.codes)
    assert forms == ["the", "dog house", "runs"] and len(heads) == 3


def test_sentencepiece(latent, run, tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece")
    text = tmp_path / "words.en"
    text.write_text("".join(" ".join(item.words) + "\n" for item in latent.items))
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(tmp_path / "spm"), vocab_size=40, hard_vocab_limit=False, minloglevel=2
    )
    found = run("--input", text, "--bpe", "sentencepiece", "--sentencepiece-model", tmp_path / "spm.model")
    assert [forms for forms, _ in found] == [item.words for item in latent.items]
    marked = tmp_path / "marked.en"
    marked.write_text("".join(item.text("sentencepiece") + "\n" for item in latent.items))
    found = run("--input", marked, "--subword-type", "sentencepiece")
    assert [forms for forms, _ in found] == [item.words for item in latent.items]


def test_unknown_pieces_of_a_split_keep_their_words(latent, checkpoint, run, tmp_path):
    # z@@ is unknown, so the dictionary has no sign that the word goes on
    from corpora import write_split
    from integration.commands import binarize

    write_split(tmp_path / "text" / "test", [Item([["z", "dog"], ["the"]], [1, -1])])
    dictionaries = ["--srcdict", latent.data / "dict.en.txt", "--tgtdict", latent.data / "dict.de.txt"]
    tags = ["--syntax-dicts", latent.data]
    data = binarize({"test": tmp_path / "text" / "test"}, tmp_path / "bin", *dictionaries, *tags)
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


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_a_picture_alone(latent, checkpoint, tmp_path, capsys, suffix):
    picture = tmp_path / f"tree.{suffix}"
    source = [latent.data, "--path", checkpoint, "--cpu", "--input", f"{latent.text}.en.conllu"]
    assert trees.main([str(a) for a in [*source, "--draw", picture, "--sentence", "2"]]) == 0
    assert capsys.readouterr().out == ""
    assert [path.name for path in tmp_path.iterdir()] == [picture.name]
    if suffix == "svg":
        names = re.findall(r'id="((?:arc|gold)-\d+)"', picture.read_text())
        words = range(len(latent.items[2].words))
        assert sorted(names) == sorted(f"{kind}-{i}" for kind in ("arc", "gold") for i in words)


def test_a_treebank_is_drawn_without_a_model(tmp_path, capsys):
    bank = tmp_path / "bank.conllu"
    bank.write_text(TREEBANK)
    picture = tmp_path / "tree.svg"
    assert trees.main(["--input", str(bank), "--draw", str(picture)]) == 0
    assert len(re.findall(r'id="arc-\d+"', picture.read_text())) == 3
    # every arc has its relation
    (tree,) = read_conllu(bank)
    labels = re.findall(r'id="label-arc-\d+".*?>([^<>\s]+)</text>', picture.read_text(), re.DOTALL)
    assert labels == tree.deprels and "root" in labels
    said = refused(capsys, "--input", bank, "--draw", tmp_path / "other.svg", "--sentence", "1")
    assert "--sentence 1: there are 1 sentences" in said
    bank.write_text(re.sub(r"\t[0-9]+\t(?=det|root|acl)", "\t_\t", TREEBANK))
    assert "has no tree" in refused(capsys, "--input", bank, "--draw", tmp_path / "other.svg")


# --- refusals -----------------------------------------------------------------------------------------------------


def test_a_failure_leaves_no_file(latent, checkpoint, tmp_path, capsys):
    text = tmp_path / "cut.en"
    text.write_text("the dog\nthe do@@\n")
    arguments = [latent.data, "--path", checkpoint, "--cpu", "--input", text, "--output", tmp_path / "out.conllu"]
    assert f"{text}:2: the text ends inside a word" in refused(capsys, *arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["cut.en"]
