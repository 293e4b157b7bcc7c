"""Models that leave: what fairseq and CTranslate2 translate with them is what the checkpoint translates."""

import re
import shutil
from pathlib import Path

import pytest
import torch
from integration import commands
from integration.commands import DECODING

from fairseq_syntax import pretrained
from fairseq_syntax.tools import export, translate

MODEL = "agreement-transformer"


@pytest.fixture(scope="module")
def planted(corpus, tmp_path_factory) -> tuple[Path, str]:
    """Data that a bundled model translates, and its checkpoint as if its heads had been planted."""
    folder, bundled = tmp_path_factory.mktemp("planted"), pretrained.folder(MODEL)
    dictionaries = ["--srcdict", bundled / "dict.en.txt", "--tgtdict", bundled / "dict.de.txt"]
    words = corpus.parent / "words"
    splits = {split: words / split for split in ("valid", "test")}
    data = commands.binarize(splits, folder / "data-bin", *dictionaries, "--syntax-dicts", bundled)
    state = torch.load(pretrained.checkpoint(MODEL), weights_only=True)
    state["cfg"]["model"].arch = "planted_transformer_tiny"
    state["cfg"]["model"].planted_heads = [0, 1]
    torch.save(state, folder / "checkpoint.pt")
    return data, str(folder / "checkpoint.pt")


def exported(planted, to: str, folder: Path, *options) -> int:
    data, checkpoint = planted
    return export.main([str(data), "--path", checkpoint, "--to", to, "--output", str(folder), *options])


def differences(capfd) -> float:
    """The largest one that was told of."""
    return float(re.search("scores of 61 translations differ by at most ([0-9.e+-]+) nats", capfd.readouterr().err)[1])


WITHOUT_US = """
import sys
sys.modules["fairseq_syntax"] = None  # cannot be imported
sys.argv[:] = ["fairseq-generate", *sys.argv[1:]]
from fairseq_cli.generate import cli_main
cli_main()
"""


def test_fairseq_translates_without_the_package(planted, tmp_path, capfd):
    (data, checkpoint), plain = planted, tmp_path / "plain"
    assert exported(planted, "fairseq", plain) == 0
    assert differences(capfd) == 0
    state = torch.load(plain / "model.pt", weights_only=True)
    assert state["cfg"]["model"]["_name"] == "transformer_tiny"
    assert not [name for name in state["cfg"]["model"] if "planted" in name or "syntax" in name or "parser" in name]
    arguments = [data, "--path", plain / "model.pt", "--task", "translation", *DECODING, "--cpu"]
    arguments += ["--required-batch-size-multiple", "1"]  # without it, fairseq leaves out the last three
    program = tmp_path / "generate.py"
    program.write_text(WITHOUT_US)
    found = commands.hypotheses(commands.run_process(program, *arguments, cwd=tmp_path))
    commands.assert_same_hypotheses(found, commands.generate(data, checkpoint, *DECODING))
    assert len({text for _, text in found.values()}) > 15


def test_ctranslate2_translates_as_the_checkpoint(corpus, planted, tmp_path, capfd):
    """In single precision; in int8, sums saturate on processors without VNNI."""
    pytest.importorskip("ctranslate2")
    (data, checkpoint), served = planted, tmp_path / "served"
    assert exported(planted, "ctranslate2", served) == 0
    assert differences(capfd) < 1e-5
    assert exported(planted, "fairseq", data, "--overwrite") == 1 and Path(data, "dict.en.txt").exists()
    assert f"--output {data}: would replace {data}; name a new folder" in capfd.readouterr().err
    source = tmp_path / "in"
    lines = (corpus.parent / "words" / "test.en").read_text(encoding="utf-8").splitlines()
    source.write_text("\n".join(["", *lines, " "]) + "\n", encoding="utf-8")
    outputs = []
    for place in ([str(served)], [str(data), "--path", checkpoint]):
        output = tmp_path / "out"
        given = ["--input", str(source), "--output", str(output), "--overwrite", "--cpu", "--max-len-b", "30"]
        assert translate.main([*place, *given]) == 0
        outputs.append(output.read_text(encoding="utf-8").splitlines())
    assert outputs[0][0] == outputs[0][-1] == "" and len(outputs[0]) == len(lines) + 2
    model = export.Served(served, cpu=True, on_cpu="default")
    outputs.append([line or "" for line in translate.translate(model, ["", *lines, " "], max_len_b=30)])
    in_int8 = translate.translate(export.Served(served, cpu=True), ["", *lines, " "], max_len_b=30)
    assert outputs[0] == [line or "" for line in in_int8]
    for least, output in ((0.85, outputs[0]), (0.98, outputs[2])):
        same = [one == other for one, other in zip(output, outputs[1], strict=True)]
        assert sum(same) >= least * len(same), [
            pair for pair in zip(output, outputs[1], strict=True) if len(set(pair)) > 1
        ]


@pytest.mark.parametrize("options", [[], ["--quantization", "int8"]])
def test_another_model_than_the_checkpoint_is_an_error(planted, options, tmp_path, capfd, monkeypatch):
    """One layer norm is larger by a hundredth: nothing is written, and what differs is said; in int8, that is all."""
    pytest.importorskip("ctranslate2")
    write = export.export

    def write_another(loaded, *arguments):
        loaded.model.decoder.layers[-1].final_layer_norm.weight.data *= 1.01
        write(loaded, *arguments)
        loaded.model.decoder.layers[-1].final_layer_norm.weight.data /= 1.01

    monkeypatch.setattr(export, "export", write_another)
    assert exported(planted, "ctranslate2", tmp_path / "served", *options) == (0 if options else 1)
    said = capfd.readouterr().err
    place = r"by at most \S+e-0[123] nats per token \(sentence \d+ of valid: -\S+ by the checkpoint, -\S+ as exported\)"
    assert bool(re.search(place + ".*nothing was written", said)) is not bool(options), said
    assert [path.name for path in tmp_path.iterdir()] == (["served"] if options else [])
    if options:
        assert exported(planted, "ctranslate2", tmp_path / "served") == 1
        assert "served: exists already" in capfd.readouterr().err


def test_outputs_at_the_length_limit_do_not_matter_and_the_search_comes_along(planted, tmp_path, capfd):
    """Rounding decides what an untrained model, which ends no sentence, writes."""
    pytest.importorskip("ctranslate2")
    state, generator = torch.load(planted[1], weights_only=True), torch.Generator().manual_seed(1)
    for name, weight in state["model"].items():
        if "embed_positions" not in name and weight.dim() > 1:
            torch.nn.init.xavier_uniform_(weight, generator=generator)
    torch.save(state, tmp_path / "checkpoint.pt")
    untrained, options = (planted[0], str(tmp_path / "checkpoint.pt")), tmp_path / "generation.json"
    served = str(tmp_path / "served")
    options.write_text('{"max_len_b": 30, "lenpen": 0.7, "unkpen": 1}')
    assert exported(untrained, "ctranslate2", served) == 1
    assert "CTranslate2's search has no unkpen" in capfd.readouterr().err
    options.write_text('{"max_len_b": 30, "min_len": 30, "lenpen": 0.7}')
    assert exported(untrained, "ctranslate2", served) == 0
    assert differences(capfd) < 1e-4
    (tmp_path / "in").write_text("the dog sees the cats .\n")
    assert translate.main([served, "--input", str(tmp_path / "in"), "--cpu"]) == 0
    assert len(capfd.readouterr().out.split()) == 30


def test_a_damaged_validation_set_is_not_taken_for_a_missing_one(planted, tmp_path, capfd):
    data, checkpoint = tmp_path / "data-bin", planted[1]
    shutil.copytree(planted[0], data)
    damaged = data / "valid.en-de.en.idx"
    damaged.write_bytes(damaged.read_bytes()[:30])
    assert exported((data, checkpoint), "fairseq", tmp_path / "plain") == 1
    assert str(data) in capfd.readouterr().err and not (tmp_path / "plain").exists()
    assert export.main([MODEL, "--to", "fairseq", "--output", str(tmp_path / "plain")]) == 0
    assert "has no validation set" in capfd.readouterr().err
