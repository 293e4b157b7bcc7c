"""fairseq-syntax check on directories of all sorts; damaged ones are in contract/test_damaged_data.py."""

import json
import shutil

import pytest
from corpora import Item, random_items, write_split
from integration.commands import binarize

from fairseq_syntax.cli import check, preprocess


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("check")
    for seed, name in enumerate(("train", "test")):
        items = [*random_items(6, seed), Item([], []), Item([["a"], ["b"]], [-2, -2])]
        write_split(folder / name, items)
    return binarize({name: folder / name for name in ("train", "test")}, folder / "bin", "--allow-unparsed")


def run(capsys, *arguments):
    """Exit status, lines on stdout, lines on stderr."""
    code = check.main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return code, said.out.splitlines(), said.err.splitlines()


def test_what_is_right_is_summed_up(data, capsys):
    code, out, err = run(capsys, data)
    assert (code, err) == (0, [])
    assert [line.split(":")[0] for line in out] == ["test", "train", str(data)]
    assert "8 sentences" in out[0] and "1 unparsed" in out[0] and "distances" in out[0]
    assert run(capsys, data, "-s", "en", "-t", "de")[0] == 0


def test_arrays_that_are_not_stored_are_not_missed(data, capsys, tmp_path):
    text = data.parent
    made = binarize({"train": text / "train"}, tmp_path / "bin", "--allow-unparsed", "--no-distances")
    code, out, _ = run(capsys, made)
    assert code == 0 and "distances" not in out[0]


@pytest.mark.parametrize("kind", ["mmap", "raw"])
@pytest.mark.parametrize("target", [["-t", "de"], []])
def test_of_a_source_alone_there_need_be_no_more(data, capsys, tmp_path, kind, target):
    prefix = ["--trainpref", data.parent / "train", "--destdir", tmp_path / "bin"]
    options = ["-s", "en", *target, "--only-source", "--allow-unparsed", "--dataset-impl", kind, *prefix]
    preprocess.main([str(option) for option in options])
    capsys.readouterr()
    assert run(capsys, tmp_path / "bin")[::2] == (0, [])
    if target:
        (tmp_path / "bin" / "dict.en.txt").unlink()
        code, out, err = run(capsys, tmp_path / "bin")
        assert (code, out) == (1, []) and "dict.en.txt: not found" in err[0]


def test_every_fault_is_named_once(data, capsys, tmp_path):
    folder = shutil.copytree(data, tmp_path / "bin")
    shutil.copy(folder / "train.en-de.en.upos.bin", folder / "train.en-de.en.deprels.bin")
    (folder / "test.en-de.en.heads.bin").write_bytes(b"")
    (folder / "dict.de.txt").write_text((folder / "dict.de.txt").read_text() + "more 1\n")
    (folder / "test.en-de.de.idx").unlink()
    code, out, err = run(capsys, folder)
    assert code == 1 and f"{folder}: all right" not in out
    for name in ("train.en-de.en.deprels.bin", "test.en-de.de.idx", "dict.de.txt"):
        assert len([line for line in err if line.startswith(f"fairseq-syntax check: {folder}/{name}: ")]) == 1, name
    assert len(err) == len(set(err))


@pytest.mark.parametrize(
    "content",
    [
        "null",
        "[]",
        "{}",
        '{"format_version": null}',
        '{"format_version": "1"}',
        '{"format_version": true}',
        '{"format_version": 1, "splits": []}',
        '{"format_version": 1, "source_lang": "en", "target_lang": "de", "subword_type": "x"}',
        "[" * 100_000,
        "\udcff",
    ],
)
def test_manifests_of_the_wrong_shape_are_one_message(data, capsys, tmp_path, content):
    folder = shutil.copytree(data, tmp_path / "bin")
    (folder / "syntax-en-de.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    code, _, (message,) = run(capsys, folder)
    assert code == 1 and message.startswith(f"fairseq-syntax check: {folder}/syntax-en-de.json: not a manifest (")
    assert len(message) < 400 + len(str(folder))


@pytest.mark.parametrize(
    "change",
    [
        {"splits": []},
        {"splits": {"train": []}},
        {"splits": {"train": {"sentences": -1}}},
        {"splits": {"train": {"sentences": "8"}}},
        {"sha256": {"x": 1}},
        {"sha256": []},
        {"source_lang": "fr"},
        {"source_lang": None},
        {"target_lang": 3},
        {"subword_type": None},
    ],
)
def test_fields_of_the_wrong_shape_are_one_message(data, capsys, tmp_path, change):
    folder = shutil.copytree(data, tmp_path / "bin")
    path = folder / "syntax-en-de.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    code, _, (message,) = run(capsys, folder)
    assert code == 1 and "syntax-en-de.json: not a manifest (" in message


def test_a_manifest_does_not_lead_out_of_the_directory(data, capsys, tmp_path):
    folder = shutil.copytree(data, tmp_path / "bin")
    path = folder / "syntax-en-de.json"
    content = json.loads(path.read_text())
    content["sha256"]["../../etc/hostname"] = "0"
    path.write_text(json.dumps(content))
    code, _, (message,) = run(capsys, folder)
    assert code == 1 and "not a file of this directory" in message


def test_bad_usage(tmp_path, capsys):
    assert run(capsys, tmp_path / "none")[0] == 1
    assert "no syntax-*.json" in run(capsys, tmp_path)[2][0]
    for arguments in ([], [str(tmp_path), "-s", "en"], [str(tmp_path), "--no-such"]):
        with pytest.raises(SystemExit) as caught:
            check.main(arguments)
        assert caught.value.code == 2
