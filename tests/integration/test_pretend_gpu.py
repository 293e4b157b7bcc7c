"""On a GPU: no tensor of the host meets one of the device, and the host waits no more often than it does today.

There need not be a GPU: `pretend_gpu` keeps its rules on the CPU.
"""

import argparse
import shutil
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils, optim
from golden import families
from pretend_gpu import PretendGPU, WrongDevice

GOLDEN = Path(families.__file__).resolve().parent
ADAM = {"adam_betas": "(0.9, 0.98)", "adam_eps": 1e-8, "weight_decay": 0.0, "lr": [1e-3], "use_old_adam": False}
# how often the host waits in a training step; in a plain Transformer of fairseq 4 times
WAITS = {
    **dict.fromkeys(("pascal_transformer", "dasa_transformer", "sdatt_transformer"), 4),
    **{"tag_transformer": 5, "lisa_transformer": 6},
    **dict.fromkeys(("nmt_lstm", "char_lstm", "sdatt", "global_plus_sdatt"), 3),
    **dict.fromkeys(("sa_nmt_shared", "sa_nmt_hard", "lgp_nmt"), 4),
    **{"global_plus_chen17": 9, "lgp_parser": 1},
    "latent_tree_rnng": 2500,  # a few for every turn of the trees that grow
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """Copies of data and checkpoints of all families."""
    folder = tmp_path_factory.mktemp("pretended")
    names = ("text", "words", "characters", "checkpoints")
    copies = {name: Path(shutil.copytree(GOLDEN / name, folder / name)) for name in names}
    return copies | {"treebank": families.treebank(copies["text"])}


@pytest.fixture(params=families.FAMILIES)
def family(request, folders):
    """Name, model, configuration and task."""
    checkpoint = folders["checkpoints"] / f"{request.param}.pt"
    data = {"data": str(folders[families.FAMILIES[request.param][0]])}
    (model,), cfg, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], arg_overrides=data)
    return request.param, model, cfg, task


def batch(task, split):
    """Six sentences."""
    task.load_dataset(split)
    dataset = task.dataset(split)
    return dataset.collater([dataset[i] for i in range(6)])


def test_training_and_validation(family):
    name, model, cfg, task = family
    criterion = task.build_criterion(cfg.criterion)
    samples = {split: batch(task, split) for split in ("train", "valid")}
    with PretendGPU() as gpu:
        gpu.move(model)
        gpu.move(criterion)
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer = optim.build_optimizer(argparse.Namespace(optimizer="adam", **ADAM), parameters)
        before = [parameter.detach().clone() for parameter in parameters]
        sample = gpu.move(samples["train"])
        gpu.syncs.clear()
        loss, *_ = task.train_step(sample, model, criterion, optimizer, 0)
        optimizer.clip_grad_norm(1.0)
        optimizer.step()
        waits = dict(gpu.syncs)
        assert loss.is_cuda and bool(torch.isfinite(loss))
        assert any(not torch.equal(old, new) for old, new in zip(before, parameters, strict=True))
        assert sum(waits.values()) <= WAITS[name], waits
        loss, *_ = task.valid_step(gpu.move(samples["valid"]), model, criterion)
        assert bool(torch.isfinite(loss))


def test_beam_search(family):
    name, model, cfg, task = family
    if name == "lgp_parser":
        pytest.skip("it does not translate")
    cfg.generation.beam, cfg.generation.max_len_a, cfg.generation.max_len_b = 2, 0, 8
    sample = batch(task, "valid")
    expected = task.inference_step(task.build_generator([model], cfg.generation), [model.eval()], sample)
    with PretendGPU() as gpu:
        gpu.move(model)
        generator = task.build_generator([model], cfg.generation)
        found = task.inference_step(generator, [model.eval()], gpu.move(sample))
        tokens = [[hypothesis["tokens"].tolist() for hypothesis in sentence] for sentence in found]
    assert tokens == [[hypothesis["tokens"].tolist() for hypothesis in sentence] for sentence in expected]


# --- the pretended GPU --------------------------------------------------------------------------------------------


def test_devices_never_mix():
    with PretendGPU() as gpu:
        there, here = gpu.move(torch.ones(3)), torch.ones(3)
        assert there.is_cuda and there.device == torch.device("cuda", 0) and not here.is_cuda
        assert (there * 2 + torch.tensor(1.0)).is_cuda, "numbers of the host may come"
        assert torch.zeros(2, device=there.device).is_cuda and there.new_zeros(2).is_cuda
        for wrong in (lambda: there + here, lambda: torch.cat((there, here)), there.numpy):
            with pytest.raises(WrongDevice):
                wrong()
        assert (there.cpu() + here).tolist() == [2, 2, 2] and (there + here.to(there.device)).is_cuda
        layer = gpu.move(torch.nn.Linear(3, 2))
        layer(there).sum().backward()
        assert layer.weight.grad.is_cuda
        with pytest.raises(WrongDevice):
            layer(here)


@pytest.mark.parametrize(
    ("wait", "times"),
    [
        (lambda x: x.sum().item(), 1),
        (lambda x: bool(x.any()), 1),
        (lambda x: x.tolist(), 1),
        (lambda x: x.cpu(), 1),
        (lambda x: x[x > 0], 1),
        (lambda x: x.nonzero(), 1),
        (lambda x: torch.unique(x), 1),
        (lambda x: x.masked_fill(x > 0, 2.0)[x.long()].sum().sqrt(), 0),
    ],
)
def test_waiting_is_counted(wait, times):
    with PretendGPU() as gpu:
        wait(gpu.move(torch.tensor([0.0, 1.0, 1.0])))
    assert sum(gpu.syncs.values()) == times
