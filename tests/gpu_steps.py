"""Training steps of every family, of data and checkpoints that are kept, on a GPU or a pretended one."""

from argparse import Namespace

import torch
from fairseq import checkpoint_utils, optim, utils
from golden import families
from omegaconf import OmegaConf, open_dict

ADAM = {"_name": "adam", "adam_betas": "(0.9, 0.98)", "adam_eps": 1e-8, "weight_decay": 0.0, "lr": [1e-3]}
ADAM |= {"use_old_adam": False, "fp16_adam_stats": False, "tpu": False}
SIZES = {"encoder_layers": 2, "decoder_layers": 2, "dropout": 0.1, "criterion": "cross_entropy"}
SIZES |= dict.fromkeys(("encoder_embed_dim", "decoder_embed_dim", "encoder_hidden_size", "decoder_hidden_size"), 8)
# what is tried: checkpoint, and the options of a new model in its place; fairseq's own come first
CASES = {arch: ("nmt_lstm", {"arch": arch, **SIZES}) for arch in ("transformer_tiny", "lstm")}
CASES |= {name: (name, None) for name in families.FAMILIES}
CASES |= {
    arch: (relative, {"arch": arch, **SIZES, "encoder_layers": 1, "decoder_layers": 1})
    for relative, archs in (
        ("sa_nmt_shared", ("fa_nmt_shared", "fa_nmt", "sa_nmt", "sa_nmt_1set")),
        ("sdatt", ("global_att", "local_att", "flexible_att", "chen17", "global_plus_local", "global_plus_flexible")),
    )
    for arch in archs
}
CASES |= {f"lgp_nmt --lgp-graph {graph}": ("lgp_nmt", {"lgp_graph": graph}) for graph in ("seq", "dep", "uni")}


def load(folders, name, options):
    """Model, configuration and task of a checkpoint, or of a new model with other options."""
    checkpoint = folders["checkpoints"] / f"{name}.pt"
    data = {"data": str(folders[families.FAMILIES[name][0]])}
    (model,), cfg, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], arg_overrides=data)
    if options:
        model = task.build_model(Namespace(**({} if "arch" in options else vars(cfg.model)) | options))
    return model, cfg, task


def kept_batch(task, split, sentences=6):
    """So many sentences of a split, from its beginning again where there are no more."""
    task.load_dataset(split)
    dataset = task.dataset(split)
    return dataset.collater([dataset[i % len(dataset)] for i in range(sentences)])


def converted(thing, precision):
    """A module or a batch, as fairseq's trainer has it."""
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(precision)
    if dtype is None:
        return thing
    if isinstance(thing, torch.nn.Module):
        return thing.to(dtype)
    return utils.apply_to_sample(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor, thing)


def optimizer_of(cfg, precision, parameters):
    """fairseq's, with Adam."""
    with open_dict(cfg):
        cfg.optimizer = OmegaConf.create(ADAM)
        cfg.common.update(fp16=precision == "fp16", bf16=precision == "bf16", amp=precision == "amp")
        cfg.common.fp16_init_scale = 1  # at which no gradient is out of range, where a training would lower it
    kind = {"fp16": optim.FP16Optimizer, "bf16": optim.FP16Optimizer, "amp": optim.AMPOptimizer}.get(precision)
    return kind.build_optimizer(cfg, parameters) if kind else optim.build_optimizer(cfg.optimizer, parameters)


def waits(gpu, task, model, criterion, optimizer, sample) -> tuple[int, torch.Tensor]:
    """How often the host waits for the GPU in a training step, and its loss; all is on the GPU."""
    gpu.syncs.clear()
    loss, *_ = task.train_step(sample, model, criterion, optimizer, 0)
    optimizer.clip_grad_norm(1.0)
    optimizer.step()
    return sum(gpu.syncs.values()), loss
