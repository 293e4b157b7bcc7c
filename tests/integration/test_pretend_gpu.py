"""On a GPU, in every precision: no tensor of the host meets one of the device, and the host waits no more often than
docs/speed.md says, whose table these tests keep.

There need not be a GPU: `pretend_gpu` keeps its rules on the CPU. With one, `pytest -m gpu` runs more on it.
"""

from collections.abc import Iterable
from pathlib import Path

import pytest
import torch
from golden import families
from gpu_steps import CASES, converted, kept_batch, load, optimizer_of, waits
from pretend_gpu import PretendGPU, RealGPU, WrongDevice

TABLE = Path(families.__file__).resolve().parents[2] / "docs" / "speed.md"
REAL = torch.cuda.is_available()
pytestmark = [pytest.mark.gpu] if REAL else []


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


@tried({"fp32": CASES, "amp": ("sa_nmt_shared", "lgp_nmt", "latent_tree_rnng")}, ("fp32", "amp", "fp16", "bf16"))
def test_training_and_validation(folders, gpu, case, precision):
    model, cfg, task = load(folders, *CASES[case])
    criterion = converted(task.build_criterion(cfg.criterion), precision)
    model = converted(model, precision)
    samples = [converted(kept_batch(task, split), precision) for split in ("train", "valid")]
    with gpu:
        model, criterion, samples = gpu.move(model), gpu.move(criterion), gpu.move(samples)
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer = optimizer_of(cfg, precision, parameters)
        before = [parameter.detach().clone() for parameter in parameters]
        number, loss = waits(gpu, task, model, criterion, optimizer, samples[0])
        assert loss.is_cuda and bool(torch.isfinite(loss))
        assert any(not torch.equal(old, new) for old, new in zip(before, parameters, strict=True))
        loss, *_ = task.valid_step(samples[1], model, criterion)
        assert bool(torch.isfinite(loss))
    if isinstance(gpu, PretendGPU) and precision == "fp32":
        rows = [line.split("|") for line in TABLE.read_text().splitlines() if line.startswith("| ")]
        (said,) = (int(row[2]) for row in rows if f"`{case}`" in row[1] and len(row) == 5)
        # trees that are drawn differ
        assert abs(number - said) <= ("tree" in case) * said / 4, dict(gpu.syncs)


@tried({"fp32": families.FAMILIES}, ("fp32", "fp16", "bf16"), without="lgp_parser")
def test_beam_search(folders, gpu, case, precision):
    model, cfg, task = load(folders, *CASES[case])
    model = converted(model, precision).eval()
    cfg.generation.beam, cfg.generation.max_len_a, cfg.generation.max_len_b = 1 if "tree" in case else 2, 0, 8
    sample = converted(kept_batch(task, "valid"), precision)
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
