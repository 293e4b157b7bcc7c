"""Translation by grammars that build trees: greedily, as the paper does, or by beam search. For `fairseq-generate`."""

import numpy as np
import torch
from torch import Tensor

from .beam import beam_search
from .brackets import to_brackets
from .constituents import NONE, Constituents
from .symbols import SymbolChoice
from .transitions import Action
from .tree_growing import given_text, grow_trees, left_justified


class TreeGenerator:
    """What `fairseq-generate` asks for translations, with the trees of both sides.

    The source has its most probable tree, action by action. With a beam of 1 so has the target, and its symbols are the
    most probable ones (the paper's inference); wider beams compare hypotheses of equal numbers of symbols.

    Args:
        src_dict, tgt_dict: dictionaries of both sides.
        beam: width, and number of hypotheses.
        max_len_a, max_len_b: a translation of n source tokens has at most `max_len_a * n + max_len_b` symbols, and its
            end.
        min_len: and at least so many symbols without its end.
        lenpen, unnormalized: a hypothesis' score is divided by its length to the power `lenpen`, or not.
        unkpen: taken from the score of an unknown symbol.
        temperature: that scores of symbols are divided by before they become probabilities.

    Raises ValueError: a number that cannot be.
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
        unkpen: float = 0,
        temperature: float = 1,
    ):
        if beam < 1 or temperature <= 0:
            raise ValueError(f"--beam {beam} --temperature {temperature}: at least 1, and more than 0, are needed")
        self.src_dict = src_dict
        self.tgt_dict = tgt_dict
        self.eos = tgt_dict.eos()
        self.symbols_to_strip_from_output = {self.eos}
        self.beam = beam
        self.max_len_a = max_len_a
        self.max_len_b = max_len_b
        self.power = 0.0 if unnormalized else lenpen
        never = (tgt_dict.pad(), tgt_dict.bos())
        self.choice = SymbolChoice(never, tgt_dict.pad(), self.eos, tgt_dict.unk(), min_len, unkpen, temperature)

    @torch.no_grad()
    def generate(self, models, sample, prefix_tokens=None, constraints=None) -> list[list[dict]]:
        """Translate a batch.

        Args:
            models: one `latent_tree_rnng`.
            sample: with `net_input`.

        Returns for each sentence hypotheses from the best on, on the CPU: tokens, score, positional_scores, attention
        and alignment as fairseq has them, scores with penalty and temperature; src_tree and tgt_tree (str), src_spans
        and tgt_spans (lists of (start, end)) of constituents in the order of opening, the source's root among them and
        the target's not; node_attention (J, I) between them; src_capped and tgt_capped (bool), whether the budget of
        actions forbade a constituent. Raises ValueError: several models, prefixes or constraints; FloatingPointError: a
        probability is not a number.
        """
        if len(models) != 1:
            raise ValueError(
                f"{len(models)} models: grammars build different trees, so only one can translate; average their "
                "weights with fairseq-syntax average"
            )
        if prefix_tokens is not None or constraints is not None:
            raise ValueError("prefixes and constraints are not available for models that build trees")
        (model,) = models
        model.eval()
        tokens = sample["net_input"]["src_tokens"]
        source, _, memory = model.encode(tokens)
        roots = model.roots(memory)
        lengths = torch.from_numpy(source.constituents.lengths).to(tokens.device)
        rows, actions, text, most, grown = self._targets(model, sample, memory, roots, lengths)
        return self._hypotheses(model, source, memory, roots, rows, actions, text, most, grown)

    def _targets(self, model, sample, memory, roots, lengths: Tensor):
        """(N,) sentence of each hypothesis, (N, T) actions and (N, n + 1) symbols; (B,) the most symbols there may be;
        and how the trees were made up, if not by beam search.

        Args:
            lengths: (B,) of the source.
        """
        most = (self.max_len_a * (lengths + 1) + self.max_len_b).long().clamp(min=max(self.choice.min_symbols, 1))
        if self.beam == 1:
            chosen = self.choice.greedy(model.decoder)
            grown = grow_trees(model.decoder, most, model.limits, chosen, memory, roots, greedy=True, wait=model.wait)
            chosen.check()
            symbols = grown.symbols.masked_fill(grown.actions != Action.GEN, self.choice.pad)
            text, _ = left_justified(symbols, self.choice.pad)
            return torch.arange(len(most), device=most.device), grown.actions, text, most, grown
        found = beam_search(model.decoder, most, model.limits, self.choice, memory, roots, self.beam, self.power)
        return *found, most, None

    def _hypotheses(self, model, source, memory, roots, rows, actions, text, most, grown) -> list[list[dict]]:
        """Hypotheses of the sentences `rows`, with what a replay of their trees tells."""
        own = type(memory)(*(part.index_select(0, rows) for part in memory))
        own_roots = None if roots is None else roots.index_select(0, rows)
        actions, most = actions.cpu().numpy(), most.index_select(0, rows).cpu().numpy()
        scores, replay = model.decoder(actions, text.cpu().numpy(), model.limits, own, own_roots, most, grown)
        trees, sources = scores.constituents, source.constituents
        src_actions = source.constituents.actions
        src_symbols = generated(src_actions, source.symbols.cpu().numpy())
        tgt_symbols = generated(actions, scores.symbols.cpu().numpy())
        src_trees = to_brackets(src_actions, [[self.src_dict[i] for i in line[:-1]] for line in src_symbols])
        tgt_trees = to_brackets(actions, [[self.tgt_dict[i] for i in line[:-1]] for line in tgt_symbols])
        generating = actions == Action.GEN
        states = replay.states[torch.from_numpy(replay.state[generating]).to(replay.states.device)]
        places = scores.actions == Action.GEN
        step_scores = scores.log_policy.clone()
        # symbols count as in the search
        step_scores[places] += self.choice.scores_of(model.decoder, states, scores.symbols[places])
        step_scores, attentions = step_scores.cpu(), replay.attention.cpu()
        result = [[] for _ in range(len(src_actions))]
        for number, row in enumerate(rows.tolist()):
            at = TreeInBatch(trees, number), TreeInBatch(sources, row)
            attention = attentions[number, : len(at[0].spans) - 1, : len(at[1].spans)]
            # a symbol's score is that of all actions since the symbol before it
            until = step_scores[number].cumsum(0)[torch.from_numpy(generating[number])]
            positional = until.diff(prepend=until.new_zeros(1))
            innermost = at[0].local(trees.innermost[number][generating[number]])
            result[row].append(
                {
                    "tokens": torch.tensor(tgt_symbols[number]),
                    "score": until[-1] / len(until) ** self.power,
                    "positional_scores": positional,
                    "attention": symbol_attention(attention, innermost, at[1].spans),
                    "alignment": torch.empty(0),
                    "src_tree": src_trees[row],
                    "tgt_tree": tgt_trees[number],
                    "src_spans": at[1].spans,
                    "tgt_spans": at[0].spans[1:],
                    "node_attention": attention,
                    "src_capped": bool(source.capped[row]),
                    "tgt_capped": bool(scores.capped[number]),
                }
            )
        return [sorted(hypotheses, key=lambda one: -float(one["score"])) for hypotheses in result]


class TreeScorer(TreeGenerator):
    """Gives reference translations their most probable trees, and scores them: `--score-reference`.

    Scores are log probabilities, without penalty and temperature, as of fairseq's `SequenceScorer`.
    """

    def __init__(self, src_dict, tgt_dict, **options):
        super().__init__(src_dict, tgt_dict, **{**options, "unkpen": 0, "temperature": 1})

    def _targets(self, model, sample, memory, roots, lengths):
        if sample.get("target") is None:
            raise ValueError("there are no reference translations; score those of binarized data: --score-reference")
        text, most = left_justified(sample["target"], self.choice.pad)
        symbols = given_text(text, most)
        grown = grow_trees(model.decoder, most, model.limits, symbols, memory, roots, greedy=True, wait=model.wait)
        return torch.arange(len(most), device=most.device), grown.actions, text, most, grown


class TreeInBatch:
    """The constituents of one sentence of a batch; `spans` are (start, end), in the order of opening, root first."""

    def __init__(self, trees: Constituents, row: int):
        self.first, stop = np.searchsorted(trees.row, [row, row + 1])
        here = slice(self.first, stop)
        self.spans = list(zip(trees.start[here].tolist(), trees.end[here].tolist(), strict=True))

    def local(self, constituents: np.ndarray) -> np.ndarray:
        """Numbers within the sentence; `NONE` stays."""
        return np.where(constituents == NONE, NONE, constituents - self.first)


def generated(actions: np.ndarray, symbols: np.ndarray) -> list[list[int]]:
    """The symbols of each sentence, its end included."""
    return [row[taken == Action.GEN].tolist() for taken, row in zip(actions, symbols, strict=True)]


def symbol_attention(attention: Tensor, innermost: np.ndarray, spans: list[tuple[int, int]]) -> Tensor:
    """(n + 1, m + 1) attention of target symbols to source symbols, ends included, for pictures.

    A symbol attends as its innermost constituent does, and what goes to a source constituent is shared by its symbols.
    Symbols right in the root attend to all alike.

    Args:
        attention: (J, I) of constituents.
        innermost: (m + 1,) constituent of each target symbol, 0 for the root, `NONE` for one that was dropped.
        spans: of the I source constituents, root first.
    """
    length = spans[0][1]
    place = torch.arange(length + 1)
    start, end = torch.tensor(spans).T[:, :, None]
    shares = ((place >= start) & (place < end)).double()
    shares[:, length] = shares.sum(1) == 0  # nothing is in the root of an empty sentence
    shares /= shares.sum(1, keepdim=True)
    rows = torch.cat((torch.full((1, length + 1), 1 / (length + 1)), (attention.double() @ shares).float()))
    return rows[torch.from_numpy(np.maximum(innermost, 0))].T
