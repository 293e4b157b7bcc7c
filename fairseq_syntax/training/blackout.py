"""Training with BlackOut sampling instead of the full softmax (Ji et al. 2016; LGP-NMT, Sec. 3.2)."""

import argparse
import inspect
import logging
import math
from dataclasses import dataclass

import torch
from fairseq.criterions import register_criterion
from fairseq.criterions.cross_entropy import CrossEntropyCriterion, CrossEntropyCriterionConfig
from fairseq.logging import metrics
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from ..options import check_values, option
from .blackout_loss import Noise, NoiseSharing, OutputLayer, noise_distribution, sampled_losses
from .unigrams import count_target_words

logger = logging.getLogger(__name__)


@dataclass
class BlackOutConfig(CrossEntropyCriterionConfig):
    """Options of fairseq's cross_entropy, and of noise words."""

    blackout_k: int = option(2000, "noise words drawn for every target word", "[1, inf)")
    blackout_alpha: float = option(
        0.4, "noise words are drawn in proportion to count^alpha; 0 is uniform, 1 by frequency", "[0, inf)"
    )
    blackout_share: NoiseSharing = option(
        NoiseSharing.batch, "noise words are shared by a batch or a sentence", reading=True
    )


def output_layer(decoder: nn.Module) -> OutputLayer:
    """The linear output layer of a decoder. Raises ValueError: it has none."""
    if getattr(decoder, "adaptive_softmax", None) is not None:
        raise ValueError(
            "--criterion blackout: does not support an adaptive softmax; leave out --adaptive-softmax-cutoff"
        )
    # of Transformers and our recurrent models; of the LSTM
    for name in ("output_projection", "fc_out"):
        layer = getattr(decoder, name, None)
        if isinstance(layer, nn.Linear):
            return OutputLayer(layer.weight, layer.bias)
    if getattr(decoder, "share_input_output_embed", False) and isinstance(
        getattr(decoder, "embed_tokens", None), nn.Embedding
    ):
        return OutputLayer(decoder.embed_tokens.weight, None)
    raise ValueError(
        f"--criterion blackout: {type(decoder).__name__} has no linear output layer (output_projection, fc_out, or "
        "embeddings shared with --share-decoder-input-output-embed)"
    )


def output_features(model: nn.Module, net_input: dict) -> Tensor:
    """The input (B, T, C) of a model's output layer. Raises ValueError: the model does not return it."""
    inner, distributed = model, False
    while isinstance(getattr(inner, "module", None), nn.Module):  # fairseq's wrappers for several processes
        inner = inner.module
        distributed |= isinstance(inner, DistributedDataParallel)
    if "features_only" in inspect.signature(inner.forward).parameters:
        return model(**net_input, features_only=True)[0]
    if distributed:
        raise ValueError(
            f"--criterion blackout: {type(inner).__name__} cannot leave out its output layer where PyTorch gathers "
            "the gradients; give --ddp-backend legacy_ddp"
        )
    try:
        return inner.extract_features(**net_input)[0]
    except NotImplementedError:
        raise ValueError(
            f"--criterion blackout: {type(inner).__name__} does not give the features before its output layer"
        ) from None


def _check_layer(decoder: nn.Module, layer: OutputLayer, features: Tensor, size: int) -> None:
    """Raise ValueError unless the decoder's scores are a linear map of its features."""
    name = type(decoder).__name__
    if len(layer.weight) != size:
        raise ValueError(
            f"--criterion blackout: {name} scores {len(layer.weight)} words, but its dictionary has {size}"
        )
    with torch.no_grad():
        row = features.detach()[:1, :1].to(layer.weight.dtype)
        expected = decoder.output_layer(row).float()
        actual = F.linear(row, layer.weight, layer.bias).float()
    if actual.shape != expected.shape or not torch.allclose(actual, expected, rtol=1e-2, atol=1e-2, equal_nan=True):
        raise ValueError(
            f"--criterion blackout: {name} does more in its output layer than the linear map that the loss samples"
        )


@register_criterion("blackout", dataclass=BlackOutConfig)
class BlackOutCriterion(CrossEntropyCriterion):
    """BlackOut in training, and fairseq's `cross_entropy` over all words in validation.

    It is for models with a linear output layer: those of this package, and fairseq's Transformer and LSTM. In training,
    `loss` is BlackOut's loss per word, or per sentence with `--sentence-avg`, and `bo_loss` per word, both in bits;
    there is no perplexity, since neither is a likelihood. In validation, `loss`, `nll_loss` and `ppl` are fairseq's.

    Raises ValueError: an option is out of range.
    """

    def __init__(self, task, sentence_avg, blackout_k=2000, blackout_alpha=0.4, blackout_share=NoiseSharing.batch):
        super().__init__(task, sentence_avg)
        check_values(argparse.Namespace(blackout_k=blackout_k, blackout_alpha=blackout_alpha), BlackOutConfig)
        self.size = blackout_k
        self.alpha = blackout_alpha
        self.share = NoiseSharing(blackout_share)
        self._noise: Noise | None = None

    def noise(self, device: torch.device) -> Noise:
        """The noise distribution, computed in the first call because the criterion is built before data are loaded."""
        if self._noise is None:
            words = self.task.target_dictionary
            counts = count_target_words(self.task)
            self._noise = noise_distribution(counts, self.alpha, [words.pad(), words.bos()])
            logger.info(
                "blackout: %d noise words per %s, of %d words that occur; %d tokens counted, %d <unk>",
                self.size,
                self.share,
                int((self._noise.probabilities > 0).sum()),
                counts.sum(),
                counts[words.unk()],
            )
        # not a buffer, which fairseq would convert to half precision and save
        if self._noise.probabilities.device != device:
            self._noise = self._noise.to(device)
        return self._noise

    def forward(self, model, sample, reduce=True):
        """As in fairseq. Raises ValueError: the model has no linear output layer."""
        if not model.training:
            return super().forward(model, sample, reduce)
        layer = output_layer(model.decoder)
        features = output_features(model, sample["net_input"])
        if self._noise is None:
            _check_layer(model.decoder, layer, features, len(self.task.target_dictionary))
        noise = self.noise(features.device)
        target = model.get_targets(sample, None)
        counted = target.ne(self.padding_idx)
        losses = sampled_losses(features, target, counted, layer, noise, self.size, self.share)
        total = losses.sum()
        # as in cross_entropy: one loss per position, 0 at padding
        loss = total if reduce else losses.new_zeros(target.shape).masked_scatter(counted, losses).view(-1)
        sample_size = target.size(0) if self.sentence_avg else sample["ntokens"]
        logging_output = {
            "loss": total.detach() if reduce else loss.detach(),
            "bo_loss": total.detach(),
            "ntokens": sample["ntokens"],
            "nsentences": target.size(0),
            "sample_size": sample_size,
        }
        return loss, sample_size, logging_output

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        """As in fairseq, but without perplexity in training."""
        if not any("bo_loss" in log for log in logging_outputs):
            super().reduce_metrics(logging_outputs)
            return
        loss, ntokens, sample_size = (
            sum(log.get(key, 0) for log in logging_outputs) for key in ("bo_loss", "ntokens", "sample_size")
        )
        metrics.log_scalar("loss", loss / sample_size / math.log(2), sample_size, round=3)
        metrics.log_scalar("bo_loss", loss / ntokens / math.log(2), ntokens, round=3)
