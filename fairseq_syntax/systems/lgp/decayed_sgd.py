"""SGD with momentum that decays weight matrices only (Hashimoto & Tsuruoka 2017, section 4.2)."""

from dataclasses import dataclass
from typing import List

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from ...options import check_values, option


def _spare_embeddings(module, name, parameter):
    """Mark the parameters of embeddings, as a hook of torch on every parameter that a module gets.

    fairseq gives its optimizers parameters without their modules, so embeddings must be marked before. A table that is
    tied to the softmax is the same parameter and keeps the mark.
    """
    if isinstance(module, (nn.Embedding, nn.EmbeddingBag)) and parameter is not None:
        parameter.no_weight_decay = True


register_module_parameter_registration_hook(_spare_embeddings)


@dataclass
class DecayedSGDConfig(FairseqDataclass):
    """Options of `lgp_sgd`."""

    momentum: float = option(0.75, "momentum, not Nesterov's (0.75 on small and medium data, 0.7 on large)", "[0, 1)")
    weight_decay: float = option(
        0.0,
        "L2 regularisation of weight matrices (1e-6 in the paper), added to their gradient; embeddings, "
        "a softmax tied to them and biases have none",
        "[0, inf)",
        argparse_alias="--wd",
    )
    # options of other parts
    lr: List[float] = "${optimization.lr}"
    fp16: bool = "${common.fp16}"
    bf16: bool = "${common.bf16}"


@register_optimizer("lgp_sgd", dataclass=DecayedSGDConfig)
class DecayedSGD(FairseqOptimizer):
    """`torch.optim.SGD` with momentum and a weight decay that depends on the parameter.

    - None: vectors and scalars, i.e. biases; parameters with `no_weight_decay = True`, set here for `nn.Embedding` and
      `nn.EmbeddingBag`, shared with a softmax or not, and by models for other tables.
    - Its own: a parameter with an attribute `weight_decay` (a number), set by a model.
    - `--weight-decay`: all others.

    A parameter without a gradient (`grad` is None) is left alone entirely: no decay, no momentum.

    Attributes:
        clip_value: norm at which gradients are clipped instead of `--clip-norm`; None: that of `--clip-norm`.

    Raises ValueError: half precision, where fairseq hands over copies of the parameters without their attributes.
    """

    def __init__(self, cfg: DecayedSGDConfig, params):
        super().__init__(cfg)
        if cfg.fp16 or cfg.bf16:
            raise ValueError(
                "--optimizer lgp_sgd: trains in single precision, because in half precision it cannot tell embeddings "
                "from other matrices; leave out --fp16 and --bf16 (--amp works)"
            )
        check_values(cfg, DecayedSGDConfig)
        self.clip_value: float | None = None
        self._optimizer = torch.optim.SGD(decay_groups(params, cfg.weight_decay), **self.optimizer_config)

    @property
    def optimizer_config(self):
        """Settings of all groups of parameters."""
        return {"lr": self.cfg.lr[0], "momentum": self.cfg.momentum}

    def clip_grad_norm(self, max_norm, aggregate_norm_fn=None):
        """Scale all gradients so that their common norm is at most `max_norm`, or `clip_value` if that is set."""
        limit = max_norm if self.clip_value is None else self.clip_value
        return super().clip_grad_norm(limit, aggregate_norm_fn)


def decay_groups(parameters, default: float) -> list[dict]:
    """Groups of parameters for `torch.optim`, one for each weight decay; see `DecayedSGD`.

    The groups depend on the parameters alone, so that a run can be resumed with another `default`.
    """
    groups = {}
    for parameter in parameters:
        own = getattr(parameter, "weight_decay", None)
        if parameter.dim() < 2 or getattr(parameter, "no_weight_decay", False):
            kind = "none", 0.0
        elif own is not None:
            kind = "parameter", float(own)
        else:
            kind = "option", float(default)
        group = groups.setdefault(kind, {"params": [], "weight_decay": kind[1]})
        group["params"].append(parameter)
    return list(groups.values())
