"""Raw text in, raw text out: data that were made of raw text say how, and whatever reads text does it."""

import json
import re
import shutil
from pathlib import Path

import pytest
from fairseq.models import ARCH_MODEL_REGISTRY
from integration import commands
from integration.commands import DECODING

from fairseq_syntax.evaluate.minimal_pairs import write_pairs
from fairseq_syntax.tools import contrast, preprocess, translate, whatif
from fairseq_syntax.tools.loaded_model import load_model
from fairseq_syntax.trees.conllu import Sentence, format_sentence

LANGUAGES = ["--source-lang", "en", "--target-lang", "de"]
PARSER = ["--parser", "checkpoint", "--parser-model", "agreement-parser"]
SETTINGS = ["--source-tokenizer", "words", "--lowercase", "source", "--subword-size", "60", "--joined-dictionary"]
# one that is given trees, and one that reads the letters of unknown words
ARCHITECTURES = ["pascal_transformer_tiny", "lgp_tiny"]
SEARCH = {"beam": 3, "max_len_a": 0, "max_len_b": 25}


def as_written(line: str) -> str:
    """A line of the agreement corpus as people write."""
    return (line[:1].upper() + line[1:]).replace(" .", ".")


@pytest.fixture(scope="module")
def raw(corpus, tmp_path_factory) -> Path:
    """A folder with raw text: train, valid, test."""
    folder = tmp_path_factory.mktemp("raw")
    for split in ("train", "valid", "test"):
        for language in ("en", "de"):
            lines = (corpus.parent / "words" / f"{split}.{language}").read_text(encoding="utf-8").splitlines()[:60]
            text = [as_written(line) for line in lines]
            text[3] = text[3].replace(" ", "\u00a0", 1)
            if split != "train":
                text[5] = "The dog's bird, it isn't a \u732b & sings \u201cla@@ la\u201d\u2026"
                text[7] = ""
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    return folder


def make(raw: Path, data: Path, *options) -> int:
    splits = [part for split in ("train", "valid", "test") for part in (f"--{split}pref", str(raw / split))]
    given = [*LANGUAGES, *splits, "--destdir", str(data), "--raw", str(data.parent / "text"), *SETTINGS, *PARSER]
    return preprocess.main([*given, *options])


@pytest.fixture(scope="module")
def data(raw, tmp_path_factory) -> Path:
    data = tmp_path_factory.mktemp("data") / "data-bin"
    assert make(raw, data) == 0
    return data


@pytest.fixture(scope="module", params=ARCHITECTURES)
def model(request, data, tmp_path_factory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp(request.param)
    commands.train(data, folder, request.param, "--max-update", 1)
    commands.scatter(folder / "checkpoint_last.pt")
    return request.param, folder


def detokenized(output: str) -> dict[int, str]:
    return {int(number): text for number, text in re.findall(r"^D-(\d+)\t\S+\t(.*)$", output, re.MULTILINE)}


def test_all_translate_alike(raw, data, model, tmp_path):
    """fairseq-generate, which reads binarized data, and what reads raw text: interactive, the hub, whatif."""
    arch, folder = model
    checkpoint, text = folder / "checkpoint_last.pt", raw / "test.en"
    lines = text.read_text(encoding="utf-8").splitlines()
    output = commands.run("fairseq-generate", data, "--path", checkpoint, *DECODING, "--batch-size", 7)
    expected = detokenized(output)
    assert sorted(expected) == list(range(60)) and len(set(expected.values())) > 15
    assert not any("@@" in line or " ." in line for line in expected.values())
    # the reference is written as it was
    references = dict(re.findall(r"^T-(\d+)\t(.*)$", output, re.MULTILINE))
    assert references["9"] == (raw / "test.de").read_text(encoding="utf-8").splitlines()[9]
    more = ["--path", checkpoint, "--input", text, *DECODING, "--buffer-size", 100, "--batch-size", 5]
    found = detokenized(commands.run("fairseq-interactive", data, *more))
    # LGP-NMT reads the letters of an unknown word, which binarized data do not have
    assert [i for i in range(60) if found[i] != expected[i]] == ([5] if arch == "lgp_tiny" else [])
    hub = ARCH_MODEL_REGISTRY[arch].from_pretrained(str(folder), "checkpoint_last.pt", str(data)).eval()
    assert hub.translate(lines, **SEARCH) == [found[i] for i in range(60)]
    tree = hub.parse(lines[0])
    assert "\uffed" not in "".join(tree.forms), "joiners are no words"
    # whatever is read at once
    lines[11:11] = ["", " "]
    given = ["--path", str(checkpoint), "--input", str(tmp_path / "in"), "--output", str(tmp_path / "out")]
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert translate.main([str(data), *given, "--cpu", *DECODING[1:]]) == 0
    translations = [found[i] if i != 7 else "" for i in range(60)]
    translations[11:11] = ["", ""]
    assert (tmp_path / "out").read_text(encoding="utf-8").splitlines() == translations
    assert list(translate.translate(hub, lines, together=7, **SEARCH)) == translations
    given = whatif.GivenTrees(str(checkpoint), str(data), cpu=True)
    for i in (0, 9):
        reading = whatif.whatif(given, lines[i], **SEARCH).readings[0]
        assert "".join(reading.words) == found[i].replace(" ", "")


@pytest.mark.parametrize("model", ["pascal_transformer_tiny"], indirect=True)
def test_a_line_that_cannot_be_parsed_is_named_and_others_are_translated(data, model, tmp_path, capsys):
    """Those of equal words have the trees that they have without this line."""
    _, folder = model
    trees = [[-1, 0, 0, 0], [1, -1, 1, 2], [2, 0, -1, 1]]
    words = ["the", "dog", "sees", "."]
    sentences = [Sentence(words, heads, ["_"] * 4, ["_"] * 4) for heads in trees]
    (tmp_path / "trees").write_text("".join(map(format_sentence, sentences)))
    given = ["--path", str(folder / "checkpoint_last.pt"), "--cpu", "--beam", "1", "--max-len-b", "9"]
    given += ["--parser", "conllu", "--parser-model", str(tmp_path / "trees")]
    outputs = []
    for name, line in (("all", "the dog sees.\n"), ("most", "the dog sees.\nthe cat.\n")):
        (tmp_path / name).write_text(line + "the dog sees.\n" * 2, encoding="utf-8")
        files = ["--input", str(tmp_path / name), "--output", str(tmp_path / f"{name}.out")]
        assert translate.main([str(data), *given, *files]) == (name == "most")
        outputs.append((tmp_path / f"{name}.out").read_text().splitlines())
    said = capsys.readouterr().err
    assert "/most:2: not translated: " in said and "no tree for the sentence 'the cat .'" in said
    assert outputs[1].pop(1) == "" and outputs[0] == outputs[1] and len(set(outputs[0])) == 3


@pytest.mark.parametrize("model", ["pascal_transformer_tiny"], indirect=True)
def test_pairs_of_raw_text(raw, data, model, tmp_path):
    """They are scored as the same text in pieces is."""
    _, folder = model
    english, german = ((raw / f"test.{x}").read_text(encoding="utf-8").splitlines()[8:20] for x in ("en", "de"))
    texts = zip(english, german, german[1:] + german[:1], strict=True)
    rows = [dict(zip(("source", "correct", "incorrect"), each, strict=True)) for each in texts]
    given = ["--path", str(folder / "checkpoint_last.pt"), "--cpu"]
    recipe = load_model(given[1], str(data), cpu=True).task.text
    sides = {"source": recipe.source, "correct": recipe.target, "incorrect": recipe.target}
    plain = shutil.copytree(data, tmp_path / "data-bin")
    (plain / "text.json").unlink()
    write_pairs(tmp_path / "raw", "en", "de", rows)
    write_pairs(tmp_path / "cut", "en", "de", [{name: sides[name].encode(row[name]) for name in row} for row in rows])
    scores = []
    for used, pairs, more in ((data, tmp_path / "raw", []), (plain, tmp_path / "cut", PARSER)):
        output = tmp_path / f"{pairs.name}.json"
        files = ["--pairs", str(pairs), "--output", str(output)]
        assert contrast.main([str(used), *given, *more, *files]) == 0
        scores.append(json.loads(output.read_text())["correct"])
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)


def test_work_is_not_done_twice(raw, data, tmp_path, monkeypatch, capsys):
    """What a killed run has made is taken, if it is of the same text and settings."""
    folder = tmp_path / "text"
    shutil.copytree(data.parent / "text", folder)
    (folder / "test.de").unlink()
    monkeypatch.setattr("fairseq_syntax.preparation.text.load_parser", None)
    assert make(raw, tmp_path / "data-bin") == 0
    names = sorted(path.name for path in data.iterdir() if path.name != "preprocess.log")
    for name in names:
        if not name.startswith("syntax-"):  # which has the names of the folders
            assert (tmp_path / "data-bin" / name).read_bytes() == (data / name).read_bytes(), name
    assert make(raw, tmp_path / "other", "--subword-size", "50") == 1
    assert "holds text that was made with other settings (size); delete it" in capsys.readouterr().err
    other = tmp_path / "raw"
    shutil.copytree(raw, other)
    with open(other / "test.de", "a", encoding="utf-8") as file:
        file.write("mehr\n")
    assert make(other, tmp_path / "other") == 1
    assert "60 lines, but" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["pascal_transformer_tiny"], indirect=True)
def test_other_data_are_refused(data, model, tmp_path):
    """By whatever loads a checkpoint, and a run that would go on from it."""
    arch, folder = model
    other, swapped = (shutil.copytree(data, tmp_path / name) for name in ("data-bin", "swapped"))
    recipe = json.loads((other / "text.json").read_text())
    recipe["source"]["lowercase"] = False
    (other / "text.json").write_text(json.dumps(recipe))
    for path in (swapped / "dict.en.txt", swapped / "dict.de.txt"):
        first, second, *rest = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join([second, first, *rest]), encoding="utf-8")
    for wrong, what in ((other, "text recipe"), (swapped, "source dictionary")):
        message = f"trained on other data than {wrong}, with another .*{what}"
        with pytest.raises(ValueError, match=message):
            load_model(str(folder / "checkpoint_last.pt"), str(wrong), cpu=True)
    # labels in another order, for a model that reads them
    labels = shutil.copytree(data, tmp_path / "labels")
    path = labels / "dict.en.deprel.txt"
    path.write_text("".join(reversed(path.read_text(encoding="utf-8").splitlines(keepends=True))), encoding="utf-8")
    here, there = (
        load_model(str(folder / "checkpoint_last.pt"), str(place), cpu=True).task for place in (data, labels)
    )
    here.required_inputs |= {"deprels"}
    here.load_state_dict(here.state_dict())
    with pytest.raises(ValueError, match=f"other data than {labels}, with another dictionary of deprels"):
        there.load_state_dict(here.state_dict())
    shutil.copytree(folder, tmp_path / "run")
    with pytest.raises(ValueError, match=f"checkpoint_last.pt: the model was {message}"):
        commands.train(swapped, tmp_path / "run", arch, "--task", "syntax_translation", "--max-update", 4, "-t", "de")
