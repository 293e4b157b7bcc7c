"""Translation by grammars that build trees: greedy, as in the paper, or by beam search. For `fairseq-generate`.

Beam search finds text and tree together. Hypotheses with more constituents have taken more actions, and are less
probable for that alone; so hypotheses are compared only when each has generated its next symbol (as are words in Stern
et al. 2017). Sentences need not keep step: in a turn, hypotheses of some open or close constituents, those of others
generate symbols.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .growing import given_text, grow_trees, left_justified
from .layers import Memory
from .rnng import RNNG, RNNGState
from .transitions import Action, Constituents, Limits
from .tree_files import to_brackets


@dataclass(frozen=True)
class SymbolChoice:
    """Which symbols may be generated, and how they are scored."""

    never: tuple[int, ...]  # never generated
    pad: int
    eos: int
    unk: int
    min_symbols: int = 0  # before the end, at least
    unkpen: float = 0  # subtracted from the score of the unknown symbol
    temperature: float = 1  # divides scores before they become probabilities

    def allowed_(self, scores: Tensor, generated: Tensor, most: Tensor) -> Tensor:
        """Subtract the penalty from log probabilities (n, V), and set those of forbidden symbols to -inf, in place.

        `generated` (n,) symbols precede; after `most` (n,) symbols only the end is allowed.
        """
        scores[:, self.never] = -torch.inf
        scores[:, self.unk] -= self.unkpen
        scores[generated < self.min_symbols, self.eos] = -torch.inf
        only_end = generated >= most
        end = scores[:, self.eos].clone()
        scores.masked_fill_(only_end[:, None], -torch.inf)
        scores[:, self.eos] = end
        return scores

    def scores_of(self, grammar, hidden: Tensor, symbols: Tensor) -> Tensor:
        """(n,) scores of symbols (n,) that were chosen in states (n, H), less the penalty."""
        scores = self.log_probabilities(grammar, hidden).gather(1, symbols[:, None]).squeeze(1)
        return torch.where(symbols == self.unk, scores - self.unkpen, scores)

    def log_probabilities(self, grammar, hidden: Tensor) -> Tensor:
        """(n, V) log probabilities of all symbols."""
        return (grammar.output(hidden).float() / self.temperature).log_softmax(1)

    def greedy(self, state: RNNGState, generating: Tensor) -> tuple[Tensor, Tensor]:
        """The most probable symbols, as `NextSymbols` of `grow_trees`."""
        rows = generating.nonzero().squeeze(1)
        numbers = state.transitions.consumed, state.transitions.lengths
        before, most = (values.index_select(0, rows) for values in numbers)
        scores = self.log_probabilities(state.grammar, state.hidden(rows))
        best = self.allowed_(scores, before, most).argmax(1)
        symbols = torch.full_like(state.transitions.lengths, self.pad).index_copy_(0, rows, best)
        return symbols, symbols == self.eos


# --- beam search -----------------------------------------------------------------------------------------------------


@torch.no_grad()
def beam_search(
    grammar: RNNG,
    most: Tensor,
    limits: Limits,
    choice: SymbolChoice,
    memory: Memory,
    beam: int,
    power: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The best hypotheses of B sentences.

    Until the next symbol, each sentence keeps the K best hypotheses that still open or close constituents, and a pool
    of the 2K best that have generated the symbol. When none of the former can get into the pool, the K best of the pool
    that do not end go on, and those among its K best that end are finished. A sentence is done with K finished ones.

    Args:
        most: (B,) symbols without the end that a hypothesis may have.
        choice: what may be generated.
        memory: see `RNNGState`.
        beam: K.
        power: of the length, the end included, by which scores are divided when finished hypotheses are compared.

    Returns (N,) sentence of each of N hypotheses, from 1 to K a sentence; (N, T) actions, padded with NOP; (N, n +
    1) symbols, padded. Raises FloatingPointError: a probability is not a number.
    """
    search = _Search(RNNGState(grammar, most, limits, memory), choice, beam, power)
    while search.going_on.any():
        search.turn()
    return search.best()


class _Search:
    """The hypotheses of B sentences, in columns: K that still build constituents, and a pool of 2K that have chosen
    their next symbol.

    Scores, (B, K) and (B, 2K), are log probabilities of text and tree; -inf in columns without a hypothesis.
    """

    def __init__(self, state: RNNGState, choice: SymbolChoice, beam: int, power: float):
        self.state, self.choice, self.beam, self.power = state, choice, beam, power
        most, longest = state.transitions.lengths, int(state.transitions.lengths.max())
        sentences, device, self.width = len(most), most.device, 3 * beam
        self._first = torch.arange(sentences, device=device)[:, None] * self.width  # row of each sentence
        self._columns = torch.arange(self.width, device=device).expand(sentences, -1)
        state.select(torch.arange(sentences, device=device).repeat_interleave(self.width))

        def full(*shape, value):
            return torch.full((sentences, *shape), value, device=device)

        self.scores, self.pool_scores = full(beam, value=-torch.inf), full(2 * beam, value=-torch.inf)
        self.scores[:, 0] = 0
        self.pool_symbols = full(2 * beam, value=choice.pad)
        # columns of the K, and their next actions
        self.places, self.taken = self._columns[:, :beam], full(beam, value=int(Action.NOP))
        self.going_on, self.generated, self.ended = full(value=True), full(value=0), full(value=0)
        # one more column than is used, for rows that do nothing
        shapes = {"actions": state.transitions.limits.max_actions(longest) + 1, "text": longest + 2}
        fillers = {"actions": int(Action.NOP), "text": choice.pad}
        self.lines = {name: full(self.width, shapes[name], value=fillers[name]).flatten(0, 1) for name in shapes}
        # 2K - 1 may be finished, K - 1 of them before the last turn
        self.finished = {name: full(2 * beam, shapes[name], value=fillers[name]) for name in shapes}
        self.finished["scores"] = full(2 * beam, value=-torch.inf)

    def turn(self) -> None:
        """Let the hypotheses of each sentence take an action, or generate a symbol."""
        self.scores, self.pool_scores, self.pool_symbols, self.taken, columns = self._choose()
        rows = self._rows(columns)
        self.state.select(rows)
        self.lines = {name: lines.index_select(0, rows) for name, lines in self.lines.items()}
        self.places = self._columns[:, : self.beam]
        # nothing can get into the pool any more
        ready = (self.scores == -torch.inf).all(1)
        generating = ready[:, None] & (self.pool_scores > -torch.inf)
        self._advance(torch.where(generating, int(Action.GEN), int(Action.NOP)))
        if ready.any():
            self._begin_anew(ready, generating & (self.pool_symbols == self.choice.eos))

    def _begin_anew(self, ready: Tensor, ends: Tensor) -> None:
        """Go on from the pool in sentences (B,) that are `ready`; `ends` (B, 2K) are hypotheses that have ended."""
        self.generated += ready
        # scores are sorted
        self._finish(ends[:, : self.beam])
        scores, places = self.pool_scores.masked_fill(ends, -torch.inf).topk(self.beam)
        self.going_on &= ~ready | ((self.ended < self.beam) & (scores > -torch.inf).any(1))
        ready = ready[:, None]
        self.scores = torch.where(ready, scores.masked_fill(~self.going_on[:, None], -torch.inf), self.scores)
        self.places = torch.where(ready, self.beam + places, self.places)
        self.pool_scores = self.pool_scores.masked_fill(ready, -torch.inf)

    def _choose(self) -> tuple[Tensor, ...]:
        """The hypotheses of the next turn: scores, scores and symbols of the pool, actions, and present columns."""
        structure, symbols = self._continuations()
        pool = self.pool_scores.shape[1]
        best, index = symbols.flatten(1).topk(pool)
        pool_scores, chosen = torch.cat((self.pool_scores, best), 1).topk(pool)
        vocabulary = symbols.shape[2]
        pool_symbols = torch.cat((self.pool_symbols, index % vocabulary), 1).gather(1, chosen)
        pool_places = torch.cat((self._columns[:, self.beam :], self.places.gather(1, index // vocabulary)), 1)

        scores, index = structure.flatten(1).topk(self.beam)
        # every further action makes a hypothesis less probable
        scores = scores.masked_fill(scores <= pool_scores[:, -1:], -torch.inf)
        taken = torch.where(index % 2 == 0, int(Action.NT), int(Action.REDUCE))
        taken = taken.masked_fill(scores == -torch.inf, int(Action.NOP))
        places = torch.cat((self.places.gather(1, index // 2), pool_places.gather(1, chosen)), 1)
        return scores, pool_scores, pool_symbols, taken, places

    def _continuations(self) -> tuple[Tensor, Tensor]:
        """Scores of hypotheses with one more action: (B, K, 2) of NT and REDUCE, (B, K, V) of GEN and each symbol."""
        state, grammar, scores = self.state, self.state.grammar, self.scores.flatten()
        places = (scores > -torch.inf).nonzero().squeeze(1)
        rows = self._rows(self.places).index_select(0, places)
        numbers = state.transitions.consumed, state.transitions.lengths
        before, most = (values.index_select(0, rows) for values in numbers)
        hidden, forbidden = state.hidden(rows), ~state.transitions.structure(rows)
        policy = grammar.policy_scores(hidden)
        text = self.choice.log_probabilities(grammar, hidden)
        policy[:, :: Action.REDUCE].masked_fill_(forbidden, -torch.inf)
        policy = policy.log_softmax(1).to(scores) + scores.index_select(0, places)[:, None]
        text = policy[:, Action.GEN, None] + self.choice.allowed_(text, before, most).to(scores)

        def spread(values):
            spread = values.new_full((len(scores), values.shape[1]), -torch.inf)
            return spread.index_copy(0, places, values).unflatten(0, self.scores.shape)

        # again, because topk takes NaN for the greatest
        return spread(policy[:, :: Action.REDUCE].masked_fill(forbidden, -torch.inf)), spread(text)

    def _advance(self, pool_actions: Tensor) -> None:
        """Let all hypotheses act; (B, 2K) actions of the pool."""
        actions = torch.cat((self.taken, pool_actions), 1).flatten()
        symbols = torch.cat((self.taken, self.pool_symbols), 1).flatten()
        generating = actions == Action.GEN
        # append; fillers change nothing
        transitions = self.state.transitions
        self.lines["actions"].scatter_(1, transitions.taken[:, None], actions[:, None])
        written = symbols.masked_fill(~generating, self.choice.pad)
        self.lines["text"].scatter_(1, transitions.consumed[:, None], written[:, None])
        self.state.advance(actions, symbols, generating & (symbols == self.choice.eos))

    def _finish(self, ends: Tensor) -> None:
        """Keep hypotheses that end, among the K best of the pool: (B, K) bool."""
        place = self.ended[:, None] + ends.cumsum(1) - 1
        self.ended += ends.sum(1)
        # the last place is for those that do not end
        place = place.masked_fill(~ends, 2 * self.beam - 1)
        rows = self._rows(self._columns[:, self.beam : 2 * self.beam])
        values = {name: lines.index_select(0, rows).unflatten(0, ends.shape) for name, lines in self.lines.items()}
        length = self.generated.double()[:, None] ** self.power
        values["scores"] = self.pool_scores[:, : self.beam] / length.to(self.scores)
        values["scores"] = values["scores"].masked_fill(~ends, -torch.inf)
        for name, value in values.items():
            self.finished[name].scatter_(1, place[(...,) + (None,) * (value.dim() - 2)].expand_as(value), value)

    def best(self) -> tuple[Tensor, Tensor, Tensor]:
        """The K best finished hypotheses of each sentence; see `beam_search`."""
        if not self.ended.all():
            raise not_finite("target")
        scores, order = self.finished["scores"].sort(dim=1, descending=True, stable=True)
        rows, rank = (scores[:, : self.beam] > -torch.inf).nonzero(as_tuple=True)
        actions, text = (self.finished[name][rows, order[rows, rank]] for name in ("actions", "text"))
        length = int((actions != Action.NOP).sum(1).max())
        return rows, actions[:, :length], text[:, :-1]

    def _rows(self, columns: Tensor) -> Tensor:
        """Numbers of the rows of the state in these columns, (B, n), flat."""
        return (self._first + columns).flatten()


def not_finite(side: str) -> FloatingPointError:
    """The error for scores that are NaN or infinite."""
    return FloatingPointError(f"{side} side: a probability is not a number; the training of the model has diverged")


# --- generator -------------------------------------------------------------------------------------------------------


class TreeGenerator:
    """Gives `fairseq-generate` translations and the trees of both sides.

    Actions of the source are its most probable ones. With a beam of 1, so are actions and symbols of the target (the
    paper's inference); wider beams compare hypotheses with equal numbers of symbols.

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
        """Translate a batch with one `latent_tree_rnng`.

        Returns the hypotheses of each sentence, best first, on the CPU: tokens, score, positional_scores and alignment
        as in fairseq, with `unkpen` and `temperature` in the scores; src_tree and tgt_tree (str); src_spans and
        tgt_spans (lists of (start, end)) of constituents in the order of opening, with the source's root and without
        the target's; node_attention (J, I) between them; src_capped and tgt_capped (bool), whether the budget of
        actions forbade a constituent. Raises ValueError: several models; FloatingPointError: a probability is not a
        number.
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
        if not source.log_policy.isfinite().all():
            raise not_finite("source")
        lengths = torch.from_numpy(source.constituents.lengths).to(tokens.device)
        rows, actions, text, most, grown = self._targets(model, sample, memory, lengths)
        return self._hypotheses(model, source, memory, rows, actions, text, most, grown)

    def _targets(self, model, sample, memory, lengths: Tensor):
        """Hypotheses for sources of these lengths, (B,): as `beam_search` returns them; (B,) the most symbols that they
        may have; and `Grown`, if it is not by beam search."""
        most = (self.max_len_a * (lengths + 1) + self.max_len_b).long().clamp(min=max(self.choice.min_symbols, 1))
        if self.beam == 1:
            grown = grow_trees(model.decoder, most, model.limits, self.choice.greedy, memory, greedy=True)
            symbols = grown.symbols.masked_fill(grown.actions != Action.GEN, self.choice.pad)
            text, _ = left_justified(symbols, self.choice.pad)
            return torch.arange(len(most), device=most.device), grown.actions, text, most, grown
        found = beam_search(model.decoder, most, model.limits, self.choice, memory, self.beam, self.power)
        return *found, most, None

    def _hypotheses(self, model, source, memory, rows, actions, text, most, grown) -> list[list[dict]]:
        """Hypotheses of the sentences `rows`, from a replay of their trees."""
        own = type(memory)(*(part.index_select(0, rows) for part in memory))
        actions, most = actions.cpu().numpy(), most.index_select(0, rows).cpu().numpy()
        scores, replay = model.decoder(actions, text.cpu().numpy(), model.limits, own, most, grown)
        trees, sources = scores.constituents, source.constituents
        src_trees, _ = self._bracketed(source, self.src_dict)
        tgt_trees, tgt_symbols = self._bracketed(scores, self.tgt_dict)
        generating = actions == Action.GEN
        states = replay.states[torch.from_numpy(replay.state[generating]).to(replay.states.device)]
        places = scores.actions == Action.GEN
        step_scores = scores.log_policy.clone()
        # symbols count as in the search
        step_scores[places] += self.choice.scores_of(model.decoder, states, scores.symbols[places])
        step_scores, attentions = step_scores.cpu(), replay.attention.cpu()
        if not step_scores.isfinite().all():
            raise not_finite("target")
        result = [[] for _ in src_trees]
        for number, row in enumerate(rows.tolist()):
            spans, src_spans = _spans(trees, number), _spans(sources, row)
            attention = attentions[number, : len(spans) - 1, : len(src_spans)]
            # a symbol's score is that of all actions since the symbol before it
            until = step_scores[number].cumsum(0)[torch.from_numpy(generating[number])]
            positional = until.diff(prepend=until.new_zeros(1))
            result[row].append(
                {
                    "tokens": torch.tensor(tgt_symbols[number]),
                    "score": until[-1] / len(until) ** self.power,
                    "positional_scores": positional,
                    "attention": None,  # of symbols
                    "alignment": torch.empty(0),
                    "src_tree": src_trees[row],
                    "tgt_tree": tgt_trees[number],
                    "src_spans": src_spans,
                    "tgt_spans": spans[1:],
                    "node_attention": attention,
                    "src_capped": bool(source.capped[row]),
                    "tgt_capped": bool(scores.capped[number]),
                }
            )
        return [sorted(hyps, key=lambda hyp: -float(hyp["score"])) for hyps in result]

    @staticmethod
    def _bracketed(scores, dictionary) -> tuple[list[str], list[list[int]]]:
        """The trees of TreeScores in brackets, and the symbols of each sentence, its end included."""
        actions = scores.constituents.actions
        symbols = scores.symbols.cpu().numpy()
        lines = [row[taken == Action.GEN].tolist() for taken, row in zip(actions, symbols, strict=True)]
        return to_brackets(actions, [[dictionary[i] for i in line[:-1]] for line in lines]), lines


class TreeScorer(TreeGenerator):
    """Gives reference translations their most probable trees, and scores them: `--score-reference`.

    Scores are log probabilities, without penalty and temperature, as of fairseq's `SequenceScorer`.
    """

    def __init__(self, src_dict, tgt_dict, **options):
        super().__init__(src_dict, tgt_dict, **{**options, "unkpen": 0, "temperature": 1})

    def _targets(self, model, sample, memory, lengths):
        if sample.get("target") is None:
            raise ValueError("there are no reference translations; score those of binarized data: --score-reference")
        text, most = left_justified(sample["target"], self.choice.pad)
        symbols = given_text(text, most)
        grown = grow_trees(model.decoder, most, model.limits, symbols, memory, greedy=True)
        return torch.arange(len(most), device=most.device), grown.actions, text, most, grown


def _spans(trees: Constituents, row: int) -> list[tuple[int, int]]:
    """The (start, end) of the constituents of a sentence in the order of opening, root first."""
    here = slice(*np.searchsorted(trees.row, [row, row + 1]))
    return list(zip(trees.start[here].tolist(), trees.end[here].tolist(), strict=True))
