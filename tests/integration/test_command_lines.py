"""The commands as users type them: the folder for --user-dir."""

from integration import commands
from integration.commands import OPTIONS, PACKAGE, run_process

FEW = ["--max-update", "2"]


def test_directory_command_from_elsewhere(data_bin, tmp_path):
    """`--user-dir "$(fairseq-syntax dir)"` in a directory without the package."""
    printed = run_process("bash", "-c", "fairseq-syntax dir 2> /dev/null", cwd=tmp_path)
    assert printed == f"{PACKAGE.resolve()}\n"
    model = ["--arch", "lisa_transformer_tiny", *OPTIONS["lisa_transformer_tiny"], "--save-dir", tmp_path / "model"]
    arguments = [data_bin, "--user-dir", printed.strip(), *commands.TRAINING, *model, "--max-update", "1"]
    log = run_process("fairseq-train", *arguments, cwd=tmp_path)
    assert any("parse_loss" in record for record in commands.records(log))
