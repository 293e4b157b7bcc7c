"""Greedy translation by grammars that build trees, as in the paper. For `fairseq-generate`."""

import numpy as np
import torch
from torch import Tensor

from .growing import SymbolChoice, grow_trees, left_justified
from .layers import Grown
from .transitions import Action
from .tree_files import to_brackets


def refuse_diverged(side: str, scores: Tensor) -> None:
    """Raise FloatingPointError if scores are NaN or infinite."""
    if not scores.isfinite().all():
        raise FloatingPointError(f"{side} side: a probability is not a number; the training of the model has diverged")


class TreeGenerator:
    """Generator for `fairseq-generate` of translations and the trees of both sides.

    Actions and symbols of both sides are the most probable ones (the paper's inference).

    Args: as in fairseq; lengths do not count the end of the sentence, except that of the source in `max_len_a`.
    """

    def __init__(
        self,
        src_dict,
        tgt_dict,
        beam: int = 1,
        max_len_a: float = 0,
        max_len_b: int = 200,
        min_len: int = 1,
        lenpen: float = 1,
        unnormalized: bool = False,
    ):
        if beam != 1:
            raise ValueError(f"--beam {beam}: trees are built greedily, as in the paper; give --beam 1")
        self.src_dict = src_dict
        self.tgt_dict = tgt_dict
        self.eos = tgt_dict.eos()
        self.symbols_to_strip_from_output = {self.eos}
        # the third is a limit on all sentences, as fairseq's generator has it
        self.max_len_a, self.max_len_b, self.max_len = max_len_a, max_len_b, 1 << 62
        self.power = 0.0 if unnormalized else lenpen
        self.choice = SymbolChoice((tgt_dict.pad(), tgt_dict.bos()), tgt_dict.pad(), self.eos, min_len)

    @torch.no_grad()
    def generate(self, models, sample, prefix_tokens=None, constraints=None) -> list[list[dict]]:
        """Translate a batch with one `latent_tree_rnng`.

        Returns a list of one hypothesis for each sentence, on the CPU: tokens, score, positional_scores and alignment
        as in fairseq; src_tree and tgt_tree (str); node_attention (J, I) between their constituents in the order of
        opening, with the source's root and without the target's. Raises ValueError: several models;
        FloatingPointError: a probability is not a number.
        """
        if len(models) != 1:
            raise ValueError(
                f"{len(models)} models: grammars build different trees, so only one can translate; average their "
                "weights with fairseq-syntax average"
            )
        (model,) = models
        model.eval()
        tokens = sample["net_input"]["src_tokens"]
        source, _, memory = model.encode(tokens)
        refuse_diverged("source", source.log_policy)
        targets = self._targets(model, sample, memory, source.constituents.lengths)
        return self._hypotheses(model, source, memory, *targets)

    def _targets(self, model, sample, memory, lengths: np.ndarray) -> tuple[Grown, np.ndarray, np.ndarray]:
        """Grow targets: `Grown`, symbols (B, n + 1), and limits of symbols (B,), for sources of `lengths` (B,)."""
        shortest = max(self.choice.min_symbols, 1)
        most = (self.max_len_a * (lengths + 1) + self.max_len_b).astype(int).clip(shortest, self.max_len - 1)
        grown = grow_trees(model.decoder, most, model.limits, self.choice, memory, greedy=True)
        symbols = np.where(grown.actions == Action.GEN, grown.symbols, self.choice.pad)
        return grown, left_justified(symbols, self.choice.pad)[0], most

    def _hypotheses(self, model, source, memory, grown: Grown, text, most) -> list[list[dict]]:
        """Hypotheses from a replay of their trees."""
        scores, replay = model.decoder(grown, text, model.limits, memory, most)
        src_trees, _ = self._bracketed(source, self.src_dict)
        tgt_trees, tgt_symbols = self._bracketed(scores, self.tgt_dict)
        step_scores, attentions = (scores.log_policy - scores.symbol_loss).cpu(), replay.attention.cpu()
        refuse_diverged("target", step_scores)
        sizes, src_sizes = (np.bincount(side.constituents.row).tolist() for side in (scores, source))
        result = []
        for number, src_tree in enumerate(src_trees):
            # a symbol's score is that of all actions since the symbol before it
            until = step_scores[number].cumsum(0)[torch.from_numpy(grown.actions[number] == Action.GEN)]
            positional = until.diff(prepend=until.new_zeros(1))
            result.append(
                [
                    {
                        "tokens": torch.tensor(tgt_symbols[number]),
                        "score": until[-1] / len(until) ** self.power,
                        "positional_scores": positional,
                        "attention": None,  # of symbols
                        "alignment": torch.empty(0),
                        "src_tree": src_tree,
                        "tgt_tree": tgt_trees[number],
                        "node_attention": attentions[number, : sizes[number] - 1, : src_sizes[number]],
                    }
                ]
            )
        return result

    @staticmethod
    def _bracketed(scores, dictionary) -> tuple[list[str], list[list[int]]]:
        """The trees of TreeScores in brackets, and the symbols of each sentence, its end included."""
        actions = scores.constituents.actions
        symbols = scores.symbols.cpu().numpy()
        lines = [row[taken == Action.GEN].tolist() for taken, row in zip(actions, symbols, strict=True)]
        return to_brackets(actions, [[dictionary[i] for i in line[:-1]] for line in lines]), lines


class TreeScorer(TreeGenerator):
    """Scorer of reference translations under their most probable trees: `--score-reference`.

    Scores are log probabilities, as of fairseq's `SequenceScorer`.
    """

    def __init__(self, src_dict, tgt_dict, **options):
        super().__init__(src_dict, tgt_dict, **{**options, "beam": 1})

    def _targets(self, model, sample, memory, lengths):
        if sample.get("target") is None:
            raise ValueError("there are no reference translations; score those of binarized data: --score-reference")
        text, most = left_justified(sample["target"].cpu().numpy(), self.choice.pad)
        return grow_trees(model.decoder, most, model.limits, text, memory, greedy=True), text, most
