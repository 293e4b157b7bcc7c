"""fairseq-syntax contrast: its scores are those of fairseq-generate --score-reference, alone and in any batch."""

import json
import math
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import programs
import pytest
from integration import commands

from fairseq_syntax.evaluate.minimal_pairs import write_pairs
from fairseq_syntax.systems.pascal import PascalTransformerModel
from fairseq_syntax.tools import contrast
from fairseq_syntax.tools.loaded_model import LoadedModel, load_model
from fairseq_syntax.trees.conllu import format_sentence, read_conllu
from fairseq_syntax.trees.edits import edited

SEARCH = ["--beam", 3, "--max-len-b", 12]


@pytest.fixture(scope="module")
def pairs(latent, tmp_path_factory):
    """The test split in pieces, beside its references with a word too many, their trees, and where they lie."""
    folder = tmp_path_factory.mktemp("pairs") / "test"
    lines = {name: Path(f"{latent.text}.{name}").read_text().splitlines() for name in ("en", "de")}
    rows = [
        {"source": source, "correct": target, "incorrect": f"{target} dog", "attractors": str(i % 3)}
        for i, (source, target) in enumerate(zip(lines["en"], lines["de"], strict=True))
    ]
    write_pairs(folder, "en", "de", rows)
    return SimpleNamespace(
        folder=folder, rows=rows, trees=["--parser", "conllu", "--parser-model", f"{latent.text}.en.conllu"]
    )


run = programs.runner(contrast)


@pytest.fixture
def scored(latent, trained, pairs, run, tmp_path):
    """Function: architecture, further options -> the record."""

    def call(arch, *options, folder=pairs.folder):
        path = tmp_path / f"{arch}.json"
        given = ["--path", trained(arch), "--cpu", "--pairs", folder, *pairs.trees, "--name", arch, "--output", path]
        call.printed = run(latent.data, *given, "--overwrite", *options)
        return json.loads(path.read_text())

    return call


def reference_scores(latent, checkpoint):
    """Sentence -> (mean log-probability, tokens), as fairseq-generate prints them."""
    output = commands.run(
        *("fairseq-generate", latent.data, "--path", checkpoint, "--score-reference", "--cpu", "--batch-size", 4)
    )
    means = {int(n): float(score) for n, score in re.findall(r"^H-(\d+)\t(\S+)\t", output, re.MULTILINE)}
    sizes = {int(n): len(scores.split()) for n, scores in re.findall(r"^P-(\d+)\t(.*)$", output, re.MULTILINE)}
    # fairseq prints logarithms to the base 2
    return {n: (mean * math.log(2), sizes[n]) for n, mean in means.items()}


@pytest.mark.parametrize("arch", ["pascal_transformer_tiny", "sa_nmt_shared_tiny"])
def test_scores_are_those_of_fairseq_generate(arch, latent, trained, pairs, scored):
    expected = reference_scores(latent, trained(arch))
    assert sorted(expected) == list(range(len(pairs.rows)))
    means = [expected[n][0] for n in range(len(pairs.rows))]
    np.testing.assert_allclose(scored(arch, "--score", "mean")["correct"], means, atol=2e-5)
    sums = [mean * size for mean, size in (expected[n] for n in range(len(pairs.rows)))]
    np.testing.assert_allclose(scored(arch)["correct"], sums, atol=1e-3)


@pytest.mark.parametrize(("arch", "left"), [("pascal_transformer_tiny", True), ("chen17_tiny", False)])
def test_a_batch_scores_as_one_sentence_does_on_either_padding_side(arch, left, latent, trained, pairs):
    loaded = load_model(str(trained(arch)), str(latent.data), cpu=True)
    cfg = loaded.task.cfg
    cfg.parser, cfg.parser_model, cfg.left_pad_source = "conllu", pairs.trees[-1], left
    vars(loaded.task).pop("live", None)
    sources = [row["source"] for row in pairs.rows]
    members = [(row["correct"], row["incorrect"]) for row in pairs.rows]

    def score(rows, tokens=10000):
        given = [sources[i] for i in rows], [members[i] for i in rows], [str(i) for i in rows]
        return loaded.forced_scores(*given, tokens).total.reshape(-1, 2)

    together = score(range(len(members)))
    np.testing.assert_allclose(score(range(len(members)), 1), together, atol=1e-4)
    np.testing.assert_allclose(np.concatenate([score([i]) for i in range(len(members))]), together, atol=1e-4)
    members = [member[::-1] for member in members]
    np.testing.assert_allclose(score(range(len(members)))[:, ::-1], together, atol=1e-4)


def test_tables_and_records(latent, trained, pairs, scored, run, tmp_path):
    one = scored("transformer_tiny")
    kept = ["--pairs", pairs.folder, "--beside", tmp_path / "transformer_tiny.json"]
    table = programs.tables(run(*kept, "--format", "tsv"))[0]
    right = sum(a > b for a, b in zip(one["correct"], one["incorrect"], strict=True))
    assert table[0] == ["system", "pairs", "right", "accuracy", "low", "high", "ties"]
    assert table[1][:4] == ["transformer_tiny", "17", str(right), f"{100 * right / 17:.1f}"]
    scored("pascal_transformer_tiny", "--beside", tmp_path / "transformer_tiny.json")
    assert "against transformer_tiny  transformer_tiny alone  system alone  p McNemar\n" in scored.printed
    assert re.search(r"^attractors  pairs  transformer_tiny +low +high  pascal_transformer_tiny", scored.printed, re.M)
    assert run(*kept, tmp_path / "pascal_transformer_tiny.json") == scored.printed
    given = ["--path", trained("transformer_tiny"), "--cpu", "--pairs", pairs.folder, "--name", "transformer_tiny"]
    assert json.loads(run(latent.data, *given, "--output", "-")) == one


def test_what_does_not_go_together_and_unknown_words_and_ties_are_told(
    latent, trained, pairs, scored, run, tmp_path, monkeypatch
):
    """The former before anything is scored."""
    scored("transformer_tiny")
    write_pairs(tmp_path / "unknown", "en", "de", [{"source": "the dog", "correct": "zzz", "incorrect": "yyy"}])
    given = [latent.data, "--path", trained("transformer_tiny"), "--cpu", "--name", "mean", "--pairs"]
    assert run(*given, tmp_path / "unknown", "--format", "tsv").splitlines()[1].split("\t")[2:4] == ["0", "0.0"]
    assert "50.0% of the tokens are unknown; 1 pairs are tied" in run.said
    monkeypatch.setattr(LoadedModel, "forced_scores", None)
    run(*given, pairs.folder, "--score", "mean", "--beside", tmp_path / "transformer_tiny.json", status=1)
    assert "were scored on different pairs, or with another --score" in run.said


@pytest.fixture(scope="module")
def tree_pairs(latent, trained, tmp_path_factory):
    """Pairs of which every second has the translations that PASCAL makes under the two trees."""
    folder = tmp_path_factory.mktemp("pairs")
    trees = list(read_conllu(f"{latent.text}.en.conllu"))
    chains = [edited(tree, {w: w - 1 for w in range(1, len(tree) + 1)}) if len(tree) > 1 else tree for tree in trees]
    lines = Path(f"{latent.text}.en").read_text().splitlines()
    path = trained("pascal_transformer_tiny")
    hub = PascalTransformerModel.from_pretrained(str(path.parent), path.name, str(latent.data))
    sentences = {"trees": trees, "other": chains}
    made = [hub.translate(lines, trees=of, beam=3, max_len_b=12) for of in sentences.values()]
    kept = [number for number, (right, other) in enumerate(zip(*made, strict=True)) if right != other]
    rows = []
    for i, number in enumerate(kept):
        right, other = (of[number] for of in made)
        rows.append({"source": lines[number], "correct": right, "incorrect": f"{right} {right}" if i % 2 else other})
    write_pairs(folder / "pairs", "en", "de", rows)
    for name, of in sentences.items():
        chosen = "".join(format_sentence(of[number]) for number in kept)
        (folder / "pairs" / f"{name}.en.conllu").write_text(chosen)
    return SimpleNamespace(folder=folder / "pairs", size=len(kept))


def test_counts_over_pairs_of_trees(latent, trained, run, tree_pairs, tmp_path):
    model = [latent.data, "--path", trained("pascal_transformer_tiny"), "--cpu", "--both-trees", *SEARCH]
    model += ["--pairs", tree_pairs.folder]
    size, half, kept = tree_pairs.size, (tree_pairs.size + 1) // 2, tmp_path / "record.json"
    assert size >= 3
    rows = {row[0]: row[1:3] for row in programs.tables(run(*model, "--format", "tsv", "--output", kept))[0][1:]}
    expected = {
        "translation under the tree = its reference": [str(size), str(size)],
        "translation under the other tree = its reference": [str(size), str(half)],
        "both translations": [str(size), str(half)],
        "the same translation under both": [str(size), "0"],
    }
    assert expected.items() <= rows.items()
    # the record has what the table says, pair by pair
    record = json.loads(kept.read_text(encoding="utf8"))
    assert record["counts"] == {name: int(cells[1]) for name, cells in rows.items()} and record["pairs"] == size
    right = [found == wanted for found, wanted in zip(record["translations"], record["references"], strict=True)]
    assert right == [i % 2 == 0 for i in range(size)]
    run(*model, "--output", kept, status=1)
    assert "--overwrite" in run.said
    (tree_pairs.folder / "other.en.conllu").unlink()
    run(*model, status=1)
    assert "0 files other.*.conllu; each pair needs both trees" in run.said
