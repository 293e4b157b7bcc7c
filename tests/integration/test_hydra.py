"""fairseq-hydra-train, which imports a plug-in only after it has read its options."""

import torch
from integration import commands
from integration.commands import PACKAGE, run_process

COMMON = [
    *("common.cpu=true", "distributed_training.distributed_world_size=1", "common.log_format=json"),
    *("dataset.max_tokens=1500", "dataset.num_workers=0", "dataset.disable_validation=true"),
    *("optimization.max_update=1", "optimization.lr=[0.005]", f"common.user_dir={PACKAGE}"),
]


def test_presets(data_bin, tmp_path):
    """Of a system, and of its size; options win over them."""
    where = [f"+task.data={data_bin}", f"checkpoint.save_dir={tmp_path / 'run'}", "+task._name=syntax_translation"]
    model = ["+model._name=sa_nmt_hard_tiny", "+model.untied_output=true", "+model.dropout=0.1", "optimizer=adam"]
    run_process("fairseq-hydra-train", *where, *COMMON, *model, cwd=tmp_path)
    model = torch.load(tmp_path / "run" / "checkpoint_last.pt", weights_only=True)["cfg"]["model"]
    assert (model["untied_output"], model["dropout"]) == (True, 0.1)
    assert (model["sa_hard_heads"], model["sa_context"], model["encoder_embed_dim"]) == (True, "shared", 64)


def test_example_file(data_bin, tmp_path, repository):
    """examples/multi30k/hydra/pascal.yaml, made small."""
    folder = repository / "examples" / "multi30k" / "hydra"
    small = [f"model.{side}_{name}" for side in ("encoder", "decoder") for name in ("embed_dim=32", "ffn_embed_dim=32")]
    overrides = [*COMMON, f"task.data={data_bin}", f"checkpoint.save_dir={tmp_path / 'run'}", *small]
    run_process("fairseq-hydra-train", "--config-dir", folder, "--config-name", "pascal", *overrides, cwd=tmp_path)
    assert not (tmp_path / "outputs").exists()
    checkpoint = tmp_path / "run" / "checkpoint_last.pt"
    assert len(commands.generate(data_bin, checkpoint, "--gen-subset", "valid", "--max-len-b", 3)) == 61
