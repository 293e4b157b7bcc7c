"""Trees that are given, not found: actions made from the characters of a batch, for ablations that need no policy."""

from enum import StrEnum

import torch
from torch import Tensor

from ...data.dataset import SyntaxPairDataset
from ...trees.characters import SPACE
from .transitions import Action


class ForcedTrees(StrEnum):
    """Which trees a batch comes with."""

    none = "none"
    flat = "flat"  # all characters in the root
    words = "words"  # a constituent for each run of characters other than the space


def forced_actions(tokens: Tensor, inside: Tensor, pad: int, eos: int) -> Tensor:
    """(B, T) actions, filled up with NOP, that build trees with a constituent for each run of some of the symbols.

    `a b ▁ c` with all but the space in runs -> NT GEN GEN REDUCE GEN NT GEN REDUCE GEN: (X (X a b ) ▁ (X c ) ) and the
    end of the sentence.

    Args:
        tokens: (B, N) ids of sentences, padded on either side, each with its end.
        inside: (B, N) bool, the symbols that are in runs; ends and padding are not, whatever it says.
        pad, eos: ids of padding and end.
    """
    real = tokens != pad
    inside = inside & real & (tokens != eos)
    beside = torch.nn.functional.pad(inside, (1, 1))
    opens, closes = inside & ~beside[:, :-2], inside & ~beside[:, 2:]
    behind = (real.long() + opens.long() + closes.long()).cumsum(dim=1)  # the actions up to and with a symbol's
    # one more column takes everything else
    steps = int(behind[:, -1].max()) if tokens.numel() else 0
    actions = tokens.new_full((len(tokens), steps + 1), Action.NOP)
    generates = behind - 1 - closes.long()
    for which, place, action in (
        (opens, generates - 1, Action.NT),
        (real, generates, Action.GEN),
        (closes, behind - 1, Action.REDUCE),
    ):
        actions.scatter_(1, place.where(which, steps), int(action))
    return actions[:, :-1]


class ForcedTreeDataset(SyntaxPairDataset):
    """Sentence pairs of characters that come with trees: `net_input["src_actions"]`, `["tgt_actions"]` (B, T) int64.

    `trees` is a `ForcedTrees`; with `none`, batches are those of fairseq.
    """

    trees: str = ForcedTrees.none

    def force(self, trees: str) -> None:
        """Let batches come with trees; ValueError for trees of words over text that has no spaces."""
        for name, dictionary in (("source", self.src_dict), ("target", self.tgt_dict)):
            if trees == ForcedTrees.words and SPACE not in dictionary:
                raise ValueError(
                    f"--rnng-forced-trees words: the {name} dictionary has no {SPACE}, which separates words; make "
                    "the text with fairseq-syntax characters, or choose none or flat"
                )
        self.trees = trees

    def collater(self, samples, pad_to_length=None):
        """Batch as the base class does, plus the actions."""
        batch = super().collater(samples, pad_to_length=pad_to_length)
        if batch and self.trees != ForcedTrees.none:
            sides = [("src_actions", batch["net_input"]["src_tokens"], self.src_dict)]
            if batch["target"] is not None:
                sides.append(("tgt_actions", batch["target"], self.tgt_dict))
            for name, tokens, dictionary in sides:
                # flat trees have no runs
                inside = (tokens != dictionary.index(SPACE)) & (self.trees == ForcedTrees.words)
                batch["net_input"][name] = forced_actions(tokens, inside, dictionary.pad(), dictionary.eos())
        return batch
