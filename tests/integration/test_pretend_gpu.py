"""On a GPU, in every precision: no tensor of the host meets one of the device, and the host waits no more often than
docs/speed.md says, whose table these tests keep.

There need not be a GPU: `pretend_gpu` keeps its rules on the CPU. With one, `pytest -m gpu` runs more on it.
"""

from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils, optim, utils
from golden import families
from omegaconf import OmegaConf, open_dict
from pretend_gpu import PretendGPU, RealGPU, WrongDevice

TABLE = Path(families.__file__).resolve().parents[2] / "docs" / "speed.md"
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
REAL = torch.cuda.is_available()
pytestmark = [pytest.mark.gpu] if REAL else []
CASES |= {f"lgp_nmt --lgp-graph {graph}": ("lgp_nmt", {"lgp_graph": graph}) for graph in ("seq", "dep", "uni")}


def tried(pretended: dict[str, Iterable[str]], precisions: Iterable[str] = ("fp32",), without: str = ""):
    """Parametrize a test by precision and case: precision -> cases of the pretended GPU; a real one has all."""
    given = dict.fromkeys(precisions, CASES) if REAL else pretended
    pairs = [(precision, case) for precision, cases in given.items() for case in cases if case != without]
    return pytest.mark.parametrize(("precision", "case"), pairs)


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """Copies of data and checkpoints of all families."""
    return families.copies(tmp_path_factory.mktemp("pretended"))


@pytest.fixture
def gpu():
    """One that is none, or a real one, where there is one."""
    # torch may be built for CUDA and have cuDNN, though there is no GPU
    with torch.backends.cudnn.flags(enabled=REAL):
        yield RealGPU() if REAL else PretendGPU()


def load(folders, case):
    """Model, configuration and task."""
    name, options = CASES[case]
    checkpoint = folders["checkpoints"] / f"{name}.pt"
    data = {"data": str(folders[families.FAMILIES[name][0]])}
    (model,), cfg, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], arg_overrides=data)
    if options:
        model = task.build_model(Namespace(**({} if "arch" in options else vars(cfg.model)) | options))
    return model, cfg, task


def batch(task, split):
    """Six sentences."""
    task.load_dataset(split)
    dataset = task.dataset(split)
    return dataset.collater([dataset[i] for i in range(6)])


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


@tried({"fp32": CASES, "amp": ("sa_nmt_shared", "lgp_nmt", "latent_tree_rnng")}, ("fp32", "amp", "fp16", "bf16"))
def test_training_and_validation(folders, gpu, case, precision):
    model, cfg, task = load(folders, case)
    criterion = converted(task.build_criterion(cfg.criterion), precision)
    model = converted(model, precision)
    samples = [converted(batch(task, split), precision) for split in ("train", "valid")]
    with gpu:
        model, criterion, samples = gpu.move(model), gpu.move(criterion), gpu.move(samples)
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer = optimizer_of(cfg, precision, parameters)
        before = [parameter.detach().clone() for parameter in parameters]
        gpu.syncs.clear()
        loss, *_ = task.train_step(samples[0], model, criterion, optimizer, 0)
        optimizer.clip_grad_norm(1.0)
        optimizer.step()
        waits = dict(gpu.syncs)
        assert loss.is_cuda and bool(torch.isfinite(loss))
        assert any(not torch.equal(old, new) for old, new in zip(before, parameters, strict=True))
        loss, *_ = task.valid_step(samples[1], model, criterion)
        assert bool(torch.isfinite(loss))
    if isinstance(gpu, PretendGPU) and precision == "fp32":
        rows = TABLE.read_text().partition("### Waiting for the host")[2].splitlines()
        (line,) = (row for row in rows if row.startswith("| ") and f"`{case}`" in row)
        most, number = line.split("|")[1].strip(), sum(waits.values())
        # trees that are drawn differ
        assert number < int(most[2:]) if most[0] == "<" else number == int(most), waits


@tried({"fp32": families.FAMILIES}, ("fp32", "fp16", "bf16"), without="lgp_parser")
def test_beam_search(folders, gpu, case, precision):
    model, cfg, task = load(folders, case)
    model = converted(model, precision).eval()
    cfg.generation.beam, cfg.generation.max_len_a, cfg.generation.max_len_b = 1 if "tree" in case else 2, 0, 8
    sample = converted(batch(task, "valid"), precision)
    expected = task.inference_step(task.build_generator([model], cfg.generation), [model], sample)
    # by default, cuDNN's recurrent layers round to TF32; models that are not trained have many near ties
    with gpu, torch.backends.cudnn.flags(not isinstance(gpu, PretendGPU), allow_tf32=False):
        model, sample = gpu.move(model), gpu.move(sample)
        found = task.inference_step(task.build_generator([model], cfg.generation), [model], sample)
        tokens = [[hypothesis["tokens"].tolist() for hypothesis in sentence] for sentence in found]
    if precision == "fp32" or isinstance(gpu, PretendGPU):
        assert tokens == [[hypothesis["tokens"].tolist() for hypothesis in sentence] for sentence in expected]
    assert len(tokens) == len(expected)


# --- the pretended GPU --------------------------------------------------------------------------------------------


def test_devices_never_mix():
    with PretendGPU() as gpu:
        there, here = gpu.move(torch.ones(3)), torch.ones(3)
        assert there.is_cuda and there.device == torch.device("cuda", 0) and not here.is_cuda
        assert (there * 2 + torch.tensor(1.0)).is_cuda, "numbers of the host may come"
        assert torch.zeros(2, device=there.device).is_cuda and there.new_zeros(2).is_cuda
        for wrong in (lambda: there + here, lambda: torch.cat((there, here)), there.numpy, lambda: here[there.long()]):
            with pytest.raises(WrongDevice):
                wrong()
        assert (there.cpu() + here).tolist() == [2, 2, 2] and (there + here.to(there.device)).is_cuda
        layer = gpu.move(torch.nn.Linear(3, 2))
        layer(there).sum().backward()
        assert layer.weight.grad.is_cuda
        with pytest.raises(WrongDevice):
            layer(here)
