"""The optimizer `lgp_sgd`: which parameters decay, against SGD written out number by number."""

import math

import pytest
import torch
from fairseq import optim
from omegaconf import OmegaConf
from torch import nn

from fairseq_syntax.systems.lgp.decayed_sgd import DecayedSGD, DecayedSGDConfig


class Model(nn.Module):
    """Every kind of parameter, each used in the loss."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.words = nn.Embedding(5, 4, padding_idx=0)
        self.ngrams = nn.EmbeddingBag(6, 4, mode="mean", padding_idx=0)
        self.lstm = nn.LSTM(4, 4, batch_first=True)
        self.convolution = nn.Conv1d(4, 4, 3)
        self.table = nn.Parameter(torch.randn(3, 4))
        self.table.no_weight_decay = True
        self.classifier = nn.Linear(4, 3)
        self.classifier.weight.weight_decay = 0.3
        self.classifier.bias.weight_decay = 0.3
        self.scale = nn.Parameter(torch.tensor(0.7))
        self.output = nn.Linear(4, 5)
        self.output.weight = self.words.weight
        self.unused = nn.Linear(4, 4)
        self.double()

    def forward(self, tokens):
        x = self.words(tokens) + self.ngrams(tokens).unsqueeze(1)
        x = self.lstm(x)[0] + self.convolution(x.transpose(1, 2)).mean(2).unsqueeze(1) + self.table.sum(0)
        return self.output(torch.tanh(x * self.scale)).square().mean() + self.classifier(x).square().mean()


DECAYED = {"lstm.weight_ih_l0", "lstm.weight_hh_l0", "convolution.weight", "unused.weight"}
OWN = {"classifier.weight"}


def build(parameters, **options) -> DecayedSGD:
    """As the trainer builds it: options of other parts come from the whole configuration."""
    precision = {name: options.pop(name, False) for name in ("fp16", "bf16")}
    own = {**OmegaConf.to_container(OmegaConf.structured(DecayedSGDConfig()), resolve=False), **options}
    lr = [own.pop("rate", 0.1)]
    cfg = {"optimization": {"lr": lr}, "common": precision, "optimizer": {**own, "_name": "lgp_sgd"}}
    return optim.build_optimizer(OmegaConf.create(cfg).optimizer, parameters)


def decays(model, **options) -> dict[str, float]:
    names = {parameter: name for name, parameter in model.named_parameters()}
    groups = build(list(model.parameters()), **options).param_groups
    return {names[parameter]: group["weight_decay"] for group in groups for parameter in group["params"]}


def batches(count):
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(1, 5, (2, 6), generator=generator) for _ in range(count)]


def test_only_matrices_that_are_no_tables_decay():
    found = decays(Model(), weight_decay=0.01)
    assert {name for name, decay in found.items() if decay == 0.01} == DECAYED
    assert {name for name, decay in found.items() if decay == 0.3} == OWN
    assert {name for name, decay in found.items() if not decay} == {
        *("words.weight", "ngrams.weight", "table", "scale", "output.bias", "classifier.bias", "convolution.bias"),
        *("lstm.bias_ih_l0", "lstm.bias_hh_l0", "unused.bias"),
    }


@pytest.mark.parametrize("momentum", [0.0, 0.75])
def test_steps_are_those_of_sgd_written_out(momentum):
    model, decay, rate = Model(), 0.02, 0.05
    optimizer = build(list(model.parameters()), weight_decay=decay, momentum=momentum, rate=rate)
    values = {name: parameter.flatten().tolist() for name, parameter in model.named_parameters()}
    velocities = {}
    for tokens in batches(4):
        optimizer.zero_grad()
        optimizer.backward(model(tokens))
        for name, parameter in model.named_parameters():
            if parameter.grad is None:
                continue
            own = decay if name in DECAYED else 0.3 if name in OWN else 0.0
            gradient = parameter.grad.flatten().tolist()
            for i, value in enumerate(values[name]):
                gradient[i] += own * value
                if name in velocities:
                    gradient[i] += momentum * velocities[name][i]
                values[name][i] = value - rate * gradient[i]
            velocities[name] = gradient
        optimizer.step()
    for name, parameter in model.named_parameters():
        assert parameter.flatten().tolist() == pytest.approx(values[name], abs=1e-12), name


@pytest.mark.parametrize(("value", "expected"), [(None, 1.0), (2.0, 2.0), (0.25, 0.25), (0.0, 30.0)])
def test_clipping(value, expected):
    parameters = [nn.Parameter(torch.zeros(3, 3)), nn.Parameter(torch.zeros(4)), nn.Parameter(torch.zeros(2, 2))]
    optimizer = build(parameters)
    optimizer.clip_value = value
    parameters[0].grad, parameters[1].grad = torch.full((3, 3), 8.0), torch.full((4,), 9.0)
    norm = optimizer.clip_grad_norm(1.0)
    assert float(norm) == pytest.approx(30.0)
    assert math.hypot(*(float(p.grad.norm()) for p in parameters[:2])) == pytest.approx(expected, rel=1e-5)
    assert parameters[2].grad is None


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_half_precision_is_refused(precision):
    given = {"fp16": False, "bf16": False, precision: True}
    with pytest.raises(ValueError, match="--optimizer lgp_sgd: trains in single precision, because"):
        DecayedSGD(DecayedSGDConfig(lr=[1.0], **given), [])
