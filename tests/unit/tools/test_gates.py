"""fairseq-syntax gates against the model run on one sentence at a time."""

import re
from collections import Counter

import pytest
import torch
from corpora import write_split
from fairseq import checkpoint_utils
from integration.commands import binarize

from fairseq_syntax.tools import gates
from fairseq_syntax.tools.gate_norms import tags_of_tokens


@pytest.fixture(scope="module")
def checkpoint(trained):
    return trained("sa_nmt_shared_tiny")


def norms_one_by_one(checkpoint, data, targets):
    """Tokens and z of each sentence, with the reference as prefix."""
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], {"data": str(data)})
    task.load_dataset("test")
    result = []
    for i, line in enumerate(targets):
        source = task.dataset("test").src[i][None]
        target = task.target_dictionary.encode_line(line, add_if_not_exist=False).long()
        prefix = torch.cat([target[-1:], target[:-1]])[None]
        with torch.no_grad():
            extra = model.eval()(source, torch.tensor([source.shape[1]]), prefix)[1]
        result.append(([*line.split(), "</s>"], extra["gate_norm"][0].tolist()))
    return result


@pytest.fixture
def targets(latent):
    return (latent.text.parent / "test.de").read_text().splitlines()


@pytest.fixture
def tags(latent, tmp_path):
    """A CoNLL-U of the target, whose words are those of the source backwards, without heads and capitalised."""
    path = tmp_path / "test.de.conllu"
    with open(path, "w") as file:
        for item in latent.items:
            words = zip(reversed(item.words), reversed(item.upos), strict=True)
            for i, (word, tag) in enumerate(words, 1):
                file.write(f"{i}\t{word.capitalize()}\t_\t{tag}\t_\t_\t_\t_\t_\t_\n")
            file.write("\n")
    return path


@pytest.mark.parametrize("arch", ["sa_nmt_shared_tiny", "sa_nmt_tiny", "fa_nmt_tiny"])
def test_norms_are_those_of_the_model(latent, trained, targets, tmp_path, arch):
    path, output = trained(arch), tmp_path / "gates.tsv"
    arguments = [latent.data, "--path", path, "--cpu", "--batch-size", "5", "--output", output]
    assert gates.main([str(argument) for argument in arguments]) == 0
    header, *rows = [line.split("\t") for line in output.read_text().splitlines()]
    assert header == ["sentence", "position", "token", "norm"]
    expected = norms_one_by_one(path, latent.data, targets)
    assert [row[:3] for row in rows] == [
        [str(i), str(t), token] for i, (tokens, _) in enumerate(expected) for t, token in enumerate(tokens)
    ]
    norms = [norm for _, of_sentence in expected for norm in of_sentence]
    assert [float(row[3]) for row in rows] == pytest.approx(norms, abs=1e-4)
    assert max(norms) - min(norms) > 1e-3


def test_the_table_and_the_page(latent, checkpoint, targets, tags, tmp_path, capsys):
    page = tmp_path / "gates.html"
    arguments = [latent.data, "--path", checkpoint, "--cpu", "--html", page, "--target-conllu", tags]
    assert gates.main([*map(str, arguments), "--format", "tsv"]) == 0
    table, summary = capsys.readouterr().out.rstrip().split("\n\n")
    highest, all_tokens = Counter(), Counter()
    bold = []
    for item, (tokens, norms) in zip(latent.items, norms_one_by_one(checkpoint, latent.data, targets), strict=True):
        of_tokens = [*reversed(item.upos), "</s>"]
        top = norms.index(max(norms))
        highest[of_tokens[top]] += 1
        all_tokens.update(of_tokens)
        bold.append(tokens[top])
    header, *rows = [line.split("\t") for line in table.splitlines()]
    assert header == ["tag", "highest", "% of highest", "% of tokens"]
    total = sum(all_tokens.values())
    assert {row[0]: row[1:] for row in rows} == {
        tag: [str(highest[tag]), f"{100 * highest[tag] / 17:.1f}", f"{100 * count / total:.1f}"]
        for tag, count in all_tokens.items()
    }
    assert re.fullmatch(r"17 sentences; the two shares are \d\.\d{3} bits apart", summary)
    found = re.findall(r"<b>(.*?)</b>", page.read_text())
    assert [token.replace("&lt;", "<").replace("&gt;", ">") for token in found] == bold


def test_chosen_sentences_on_the_page_and_in_the_picture(latent, checkpoint, tmp_path, capsys):
    page, picture = tmp_path / "gates.html", tmp_path / "gates.svg"
    model = [latent.data, "--path", checkpoint, "--cpu"]
    both = [*model, "--html", page, "--draw", picture, "--sentence", "3", "1"]
    assert gates.main([str(a) for a in both]) == 0
    assert re.findall(r"<tr><td>(\d+)</td>", page.read_text()) == ["3", "1"]
    assert picture.read_text().startswith("<?xml")


def test_pieces_get_the_tag_of_their_word(latent):
    from fairseq_syntax.trees.conllu import Sentence

    tree = Sentence(["im", "Haus", "."], [-2] * 3, ["_"] * 3, ["ADP", "NOUN", "PUNCT"])
    assert tags_of_tokens(["im", "ha@@", "us", "."], tree, "subword_nmt") == ["ADP", "NOUN", "NOUN", "PUNCT"]
    assert tags_of_tokens(["▁im", "▁ha", "us", "▁."], tree, "sentencepiece") == ["ADP", "NOUN", "NOUN", "PUNCT"]
    assert tags_of_tokens(["<unk>", "haus", "."], tree, "subword_nmt") == ["ADP", "NOUN", "PUNCT"]
    assert tags_of_tokens(["<unk>", "us", "."], tree, "subword_nmt") is None
    assert tags_of_tokens(["im", "ha@@"], tree, "subword_nmt") is None
    ranges = Sentence(["in", "dem", "Haus"], [2, 2, -1], ["_"] * 3, ["ADP", "DET", "NOUN"], [(0, 1, "im")])
    assert tags_of_tokens(["im", "Haus"], ranges, "subword_nmt") == ["ADP", "NOUN"]


def test_unknown_pieces_that_hide_words_are_counted(latent, checkpoint, tmp_path, capsys):
    from corpora import Item

    items = [Item([["the"], ["dog"]], [1, -1]), Item([["dog"]], [-1])]
    write_split(tmp_path / "text" / "test", items)
    (tmp_path / "text" / "test.de").write_text("zz@@ dog the\ndog\n")
    dictionaries = ["--srcdict", latent.data / "dict.en.txt", "--tgtdict", latent.data / "dict.de.txt"]
    data = binarize(
        {"test": tmp_path / "text" / "test"}, tmp_path / "bin", *dictionaries, "--syntax-dicts", latent.data
    )
    tags = tmp_path / "tags.conllu"
    row = "{}\t{}\t_\t{}\t_\t_\t_\t_\t_\t_\n"
    tags.write_text(
        row.format(1, "zzdog", "NOUN") + row.format(2, "the", "DET") + "\n" + row.format(1, "dog", "NOUN") + "\n"
    )
    arguments = [str(a) for a in [data, "--path", checkpoint, "--cpu", "--target-conllu", tags]]
    assert gates.main(arguments) == 0
    output = capsys.readouterr()
    assert "1 of 2 sentences are not counted" in output.err and "1 sentences; " in output.out
