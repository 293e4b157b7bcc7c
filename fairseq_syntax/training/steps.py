"""What a model may ask of its training: a criterion, a term of the loss, a learning rate of some parameters."""

import logging
from typing import Optional

import torch
from fairseq.logging import metrics
from fairseq.optim.fp16_optimizer import FP16Optimizer

logger = logging.getLogger(__name__)


class TrainingSteps:
    """Mixin of tasks, so that all criterions of fairseq go with models that learn something besides."""

    _wanted_criterion: Optional[str] = None

    def build_model(self, cfg, from_checkpoint=False):
        """As in fairseq; a new model may name the `criterion` that teaches it all that it can learn."""
        model = super().build_model(cfg, from_checkpoint)
        self._wanted_criterion = None if from_checkpoint else getattr(model, "criterion", None)
        return model

    def build_criterion(self, cfg, from_checkpoint=False):
        """As in fairseq, with a warning where the model names another."""
        wanted = self._wanted_criterion
        if wanted not in (None, cfg._name):
            logger.warning("--criterion %s learns nothing from the trees; give --criterion %s", cfg._name, wanted)
        return super().build_criterion(cfg, from_checkpoint)

    def train_step(self, sample, model, criterion, optimizer, update_num, ignore_grad=False):
        """As in fairseq; to the loss of any criterion comes what the model returns as "auxiliary_loss", if anything."""
        return super().train_step(sample, model, _with_auxiliary_loss(criterion), optimizer, update_num, ignore_grad)

    def reduce_metrics(self, logging_outputs, criterion):
        """As in fairseq; the auxiliary loss is logged per target token, in nats."""
        super().reduce_metrics(logging_outputs, criterion)
        if any("auxiliary_loss" in log for log in logging_outputs):
            total, tokens = (sum(log.get(name, 0) for log in logging_outputs) for name in ("auxiliary_loss", "ntokens"))
            metrics.log_scalar("auxiliary_loss", total / max(tokens, 1), max(tokens, 1), round=3)

    def optimizer_step(self, optimizer, model, update_num):
        """As in fairseq; parameters that a model lists in `step_shares` take a share of the step.

        Raises ValueError: there are such, and the optimizer steps with copies of the parameters.
        """
        shares = model.step_shares() if hasattr(model, "step_shares") else []
        if shares and isinstance(optimizer, FP16Optimizer):
            raise ValueError(
                "--sdatt-position-lr: does not work with --fp16 or --bf16, which have copies of the parameters; use "
                "--memory-efficient-fp16 or --amp"
            )
        before = [parameter.detach().clone() for parameter, _ in shares]
        super().optimizer_step(optimizer, model, update_num)
        with torch.no_grad():
            for (parameter, share), start in zip(shares, before, strict=True):
                parameter.copy_(start + share * (parameter - start))


def _with_auxiliary_loss(criterion):
    """A criterion that adds to the loss the "auxiliary_loss" among the extras of what the model returns.

    It is a sum over tokens, as is the loss of fairseq's criterions. What is logged as "loss" is without it.
    """

    def apply(model, sample):
        extras = []
        # what is not a pair of output and extras has none
        handle = model.register_forward_hook(
            lambda module, given, returned: extras.extend(returned[1:2] if isinstance(returned, tuple) else ())
        )
        try:
            loss, sample_size, log = criterion(model, sample)
        finally:
            handle.remove()
        for extra in extras:
            if isinstance(extra, dict) and "auxiliary_loss" in extra:
                loss = loss + extra["auxiliary_loss"]
                log["auxiliary_loss"] = extra["auxiliary_loss"].data
        return loss, sample_size, log

    return apply
