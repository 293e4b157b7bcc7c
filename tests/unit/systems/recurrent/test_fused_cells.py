"""Recurrent decoders as they are on CUDA: torch's cells of one kernel against the cells as written, and how many
kernels a target position takes."""

import fused_cells
import pytest
import small_models
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fairseq_syntax.systems.recurrent import cells

VIEWS = {"_unsafe_view", "alias", "detach", "expand", "select", "slice", "split", "split_with_sizes", "squeeze", "t"}
VIEWS |= {"transpose", "unbind", "unsqueeze", "view", "promote_types"}


@pytest.fixture(scope="module", autouse=True)
def kernels():
    yield fused_cells.register()


class Kernels(TorchDispatchMode):
    """How many operations are not views."""

    number = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.number += function._schema.name.removeprefix("aten::") not in VIEWS
        return function(*args, **(kwargs or {}))


def run(model, steps=4):
    """(scores, gradients of all that is learned, kernels) of a training step of a decoder."""
    given = small_models.batch(model)
    given["prev_output_tokens"] = given["prev_output_tokens"][:, :1].expand(-1, steps).contiguous()
    target = given.pop("prev_output_tokens")
    encoded = model.encoder(**given)
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    with Kernels() as kernels:
        scores, _ = model.decoder(target, encoder_out=encoded)
        gradients = torch.autograd.grad(scores.sin().sum(), learned)
    return scores, gradients, kernels.number


@pytest.mark.parametrize("arch", ["nmt_lstm", "global_att", "lgp_nmt"])
def test_fused_cells_compute_the_same(arch, monkeypatch):
    model = small_models.build(arch, lgp_size=5).train()
    written, gradients, _ = run(model)
    monkeypatch.setattr(cells, "fuses", lambda tensor: True)
    fused, fused_gradients, _ = run(model)
    torch.testing.assert_close(fused, written, atol=1e-12, rtol=0)
    for one, other in zip(fused_gradients, gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize(("arch", "most"), [("nmt_lstm", 45), ("sa_nmt_shared", 57), ("global_att", 55), ("sdatt", 85)])
def test_kernels_of_a_target_position(arch, most, monkeypatch):
    monkeypatch.setattr(cells, "fuses", lambda tensor: True)
    model = small_models.build(arch).train()
    assert run(model, 6)[2] - run(model, 5)[2] <= most
