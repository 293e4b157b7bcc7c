"""Checkpoints: folders of other systems, and how files are loaded."""

import ast
import shutil
from pathlib import Path

import pytest
from integration import commands
from integration.commands import OPTIONS, PACKAGE

STOCK = "transformer_tiny"
PASCAL = "pascal_transformer_tiny"
LISA = "lisa_transformer_tiny"


def test_the_folder_of_another_system_is_refused(trained, data_bin, tmp_path):
    """Whatever fairseq would accept, or advise; the checkpoint stays as it is."""
    last = Path(shutil.copy(trained(STOCK) / "checkpoint_last.pt", tmp_path))
    before = last.read_bytes()
    aligned = "label_smoothed_cross_entropy_with_alignment"
    for arch, *more, message in (
        (PASCAL, *OPTIONS[PASCAL], f"--arch {STOCK}, not {PASCAL}"),
        (LISA, *OPTIONS[LISA], "--reset-optimizer", f"--arch {STOCK}, not {LISA}"),
        (STOCK, *OPTIONS[STOCK], "--criterion", aligned, "--reset-optimizer", f"_cross_entropy, not {aligned}"),
    ):
        with pytest.raises(ValueError, match=message):
            commands.train(data_bin, tmp_path, arch, *more, "--max-update", "3")
    assert last.read_bytes() == before
    # the same system goes on, whatever its task is called; and who names a checkpoint gets it
    goes_on = ["--task", "syntax_translation", "--max-update", "3"]
    assert "Loaded checkpoint" in commands.train(data_bin, tmp_path, STOCK, *OPTIONS[STOCK], *goes_on)
    start = ["--restore-file", last, "--max-update", "4"]
    assert "Loaded checkpoint" in commands.train(data_bin, tmp_path / "new", PASCAL, *OPTIONS[PASCAL], *start)


def test_nothing_loads_unsafely():
    """No `weights_only=False`, no pickle, no other `torch.load` put in the place of torch's."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            place = f"{path.name}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.keyword) and node.arg == "weights_only":
                assert getattr(node.value, "value", None) is True, place
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                if names == {"pickle", "UnpicklingError"}:
                    continue  # an exception to catch loads nothing
                assert not names & {"pickle", "dill", "cloudpickle", "joblib"}, place
            if isinstance(node, ast.Assign):
                assert "torch.load" not in {ast.unparse(target) for target in node.targets}, place
