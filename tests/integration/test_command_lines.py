"""The commands as users type them: the folder for --user-dir, data without trees."""

import pytest
from fairseq.options import get_preprocessing_parser
from fairseq_cli import preprocess
from integration import commands
from integration.commands import OPTIONS, PACKAGE, binarize, run_process

FEW = ["--max-update", "2"]


def test_directory_command_from_elsewhere(data_bin, tmp_path):
    """`--user-dir "$(fairseq-syntax dir)"` in a directory without the package."""
    printed = run_process("bash", "-c", "fairseq-syntax dir 2> /dev/null", cwd=tmp_path)
    assert printed == f"{PACKAGE.resolve()}\n"
    model = ["--arch", "lisa_transformer_tiny", *OPTIONS["lisa_transformer_tiny"], "--save-dir", tmp_path / "model"]
    arguments = [data_bin, "--user-dir", printed.strip(), *commands.TRAINING, *model, "--max-update", "1"]
    log = run_process("fairseq-train", *arguments, cwd=tmp_path)
    assert any("parse_loss" in record for record in commands.records(log))


def test_data_without_trees_trains_models_that_need_none(corpus, tmp_path):
    splits = [part for split in ("train", "valid") for part in (f"--{split}pref", str(corpus / split))]
    data = tmp_path / "data"
    arguments = ["-s", "en", "-t", "de", *splits, "--destdir", str(data), "--joined-dictionary"]
    preprocess.main(get_preprocessing_parser().parse_args(arguments))
    commands.train(data, tmp_path / "sa_nmt", "sa_nmt_tiny", *FEW)
    with pytest.raises(ValueError, match="has no trees, but the model needs parents"):
        commands.train(data, tmp_path / "pascal", "pascal_transformer_tiny", *FEW)
    binarize({"train": corpus / "train", "valid": corpus / "valid"}, data, "--only-syntax")
    commands.train(data, tmp_path / "pascal", "pascal_transformer_tiny", *FEW)
