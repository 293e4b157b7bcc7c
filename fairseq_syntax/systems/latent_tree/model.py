"""Translation between latent constituency trees by two recurrent neural network grammars (Bradbury & Socher 2017).

A training step, for the source and then for the target, which attends to the source's constituents:

1. `grow_trees` draws trees from the policy, without gradients, for all sentences at once.
2. On the host, `legality` checks every action, and `constituents` finds the constituents that they build.
3. `RNNG.replay` attaches gradients to the phrases and states that were computed then; their gates take one product.
4. `reinforce_tree` rewards the log probabilities of the drawn actions.

That is sound because a drawn action has no gradient: REINFORCE needs only ∇ log π(action) at the trees that were drawn,
with the weights that they were drawn with.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import BaseFairseqModel, register_model
from torch import Tensor

from ...options import as_namespace, fill_defaults, option, register_presets
from .growing import Seeds, grow_trees, left_justified
from .layers import TreeMemory
from .reinforce import MovingBaselines
from .rnng import RNNG, Replay, TreePair, TreeScores
from .transitions import Limits

PolicyGradient = StrEnum("PolicyGradient", "full head")
"""Weights trained by the policy gradient: all that affect the probabilities of actions, or the policy layer's."""


@dataclass
class LatentTreeOptions(FairseqDataclass):
    """Options of the latent-tree translator; defaults are the paper's, or nearest to it."""

    rnng_size: int = option(384, "size of embeddings, phrases and states", "[1, inf)")
    rnng_policy_grad: PolicyGradient = option(
        PolicyGradient.full, "weights that the policy gradient trains", reading=True
    )


@register_model("latent_tree_rnng")
class LatentTreeRNNG(BaseFairseqModel):
    """Translator that builds trees over the characters it reads and writes."""

    options = LatentTreeOptions
    builds_trees = True
    limits = Limits()

    def __init__(self, encoder: RNNG, decoder: RNNG):
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.baselines = MovingBaselines(encoder.vocabulary, decoder.vocabulary)

    @classmethod
    def add_args(cls, parser):
        """Add the options, without defaults, which would hide those of presets."""
        gen_parser_from_dataclass(parser, cls.options(), delete_default=True)

    @classmethod
    def build_model(cls, args, task):
        """Build the model; ValueError for a task that does not translate trees."""
        if not getattr(task, "builds_trees", False):
            raise ValueError(
                f"--arch latent_tree_rnng: {type(task).__name__} does not translate trees; use --task tree_translation"
            )
        args = as_namespace(args)
        fill_defaults(args, LatentTreeOptions)
        size, detached = args.rnng_size, args.rnng_policy_grad == PolicyGradient.head
        encoder, decoder = (
            RNNG(len(dictionary), dictionary.pad(), size, side, detached)
            for dictionary, side in ((task.source_dictionary, "source"), (task.target_dictionary, "target"))
        )
        return cls(encoder, decoder)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        target: Tensor,
        trees: str = "sample",
        src_actions: Tensor | None = None,
        tgt_actions: Tensor | None = None,
        seeds: Seeds | None = None,
        detach_output: bool = False,
    ) -> TreePair:
        """Both sides of sentence pairs under trees that are sampled, greedy or forced.

        Args:
            src_tokens, target: (B, n) with the end of the sentence, padded on either side.
            src_lengths: unused.
            trees: "sample" or "greedy", where none are forced.
            src_actions, tgt_actions: (B, T) of `Action`, forced trees.
            seeds: one for each sentence pair, from which alone its trees are sampled; without them, torch draws.
            detach_output: losses of symbols train only the output layers.

        Raises ValueError: an action is not legal, or a sentence has no end.
        """
        # the loops over trees work in place, in one precision
        with torch.autocast(src_tokens.device.type, enabled=False):
            source, _, memory = self.encode(src_tokens, trees, src_actions, seeds, detach_output)
            seeds = seeds and [(*seed, 1) for seed in seeds]  # other numbers than the source's
            scores, replay = self._side(self.decoder, target, trees, tgt_actions, seeds, detach_output, memory)
        kept = np.bincount(scores.constituents.row, minlength=len(target)) - 1
        # leave out constituents that the end of the sentence has dropped
        attending = torch.arange(replay.attention.shape[1]) < torch.from_numpy(kept)[:, None]
        attending = attending.to(memory.mask.device)
        return TreePair(source, scores, replay.attention * attending.unsqueeze(2), attending, memory.mask)

    def encode(
        self,
        src_tokens: Tensor,
        trees: str = "greedy",
        actions: Tensor | None = None,
        seeds: Seeds | None = None,
        detach_output: bool = False,
    ) -> tuple[TreeScores, Replay, TreeMemory]:
        """Scores of source sentences under their trees, and the `TreeMemory` for a decoder; see `forward`."""
        scores, replay = self._side(self.encoder, src_tokens, trees, actions, seeds, detach_output)
        return scores, replay, self.encoder.memory(replay, scores.constituents)

    def _side(self, grammar, tokens, trees, actions, seeds, detach_output, memory=None) -> tuple[TreeScores, Replay]:
        """One side under given actions, or under trees that are grown."""
        text, lengths = left_justified(tokens.cpu().numpy(), grammar.padding)
        actions = None if actions is None else actions.cpu().numpy()
        grown = grow_trees(grammar, lengths, self.limits, text, memory, trees == "greedy", seeds, actions)
        return grammar(grown, text, self.limits, memory, detach_output=detach_output)

    def max_positions(self):
        """Characters of both sides; any number, the task has its own limit."""
        return (int(1e5), int(1e5))


register_presets("latent_tree_rnng", {"latent_tree_rnng": {}, "latent_tree_rnng_tiny": {"rnng_size": 32}})
