"""The peer of latent-tree RNNGs: a loop over actions, in which all sentences take their next action together.

Stacks are tensors with a place for everything that may ever lie on them, and autograd remembers each step: the usual
way to batch these models. Without attention.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fairseq_syntax.systems.latent_tree.rnng import FORBIDDEN, RNNG
from fairseq_syntax.systems.latent_tree.transitions import Action, Limits, legality


def _torch_order(weight: Tensor) -> Tensor:
    """Gates g, i, f, o in the order of torch: i, f, g, o."""
    g, i, f, o = weight.detach().chunk(4)
    return torch.cat((i, f, g, o))


class FixedStackRNNG(nn.Module):
    """The same function as a grammar, whose weights are copied.

    Args:
        grammar: to copy.
    """

    def __init__(self, grammar: RNNG):
        super().__init__()
        self.embed = nn.Embedding.from_pretrained(grammar.embed.weight.detach().clone(), freeze=False)
        self.nonterminal = nn.Parameter(grammar.nonterminal.detach().clone())
        self.cell = nn.LSTMCell(grammar.size, grammar.size)
        self.reader = nn.LSTM(grammar.size, grammar.size, batch_first=True, bidirectional=True)
        self.phrase = nn.Linear(2 * grammar.size, grammar.size)
        self.policy = nn.Linear(grammar.size, grammar.policy.out_features)
        self.output = nn.Linear(grammar.size, grammar.vocabulary)
        stack, composition = grammar.stack, grammar.composition
        values = {
            self.cell.weight_ih: _torch_order(stack.input_weight),
            self.cell.weight_hh: _torch_order(stack.recurrent_weight),
            self.cell.bias_ih: _torch_order(stack.bias),
            self.cell.bias_hh: torch.zeros_like(stack.bias),
            self.phrase.weight: composition.output_weight,
            self.phrase.bias: composition.output_bias,
        }
        for direction, suffix in enumerate(("", "_reverse")):
            for name, kind in (
                ("input_weight", "weight_ih"),
                ("input_bias", "bias_ih"),
                ("recurrent_weight", "weight_hh"),
            ):
                values[getattr(self.reader, f"{kind}_l0{suffix}")] = _torch_order(getattr(composition, name)[direction])
            unused = getattr(self.reader, f"bias_hh_l0{suffix}")
            values[unused] = torch.zeros_like(unused)
        for head in ("policy", "output"):
            values |= dict(zip(getattr(self, head).parameters(), getattr(grammar, head).parameters(), strict=True))
        with torch.no_grad():
            for parameter, value in values.items():
                parameter.copy_(value)

    def forward(self, actions: np.ndarray, text: Tensor, limits: Limits) -> Tensor:
        """Negative log probability of actions (B, T), filled up with NOP, and of texts (B, n + 1) of equal lengths."""
        legal, _ = legality(actions, np.full(len(text), text.shape[1] - 1), limits)
        actions, legal = torch.from_numpy(actions), torch.from_numpy(legal)
        places = text.shape[1] + limits.max_open + 1
        shape = len(text), places, self.nonterminal.shape[0]
        entries, hidden, cells = (torch.zeros(shape) for _ in range(3))
        top = torch.zeros(len(text), dtype=torch.long)
        opened = torch.zeros(len(text), limits.max_open + 1, dtype=torch.long)  # their places
        depth, generated = torch.zeros_like(top), torch.zeros_like(top)
        everyone = torch.arange(len(text))
        self._push((entries, hidden, cells), everyone, top.clone(), self.nonterminal.expand(len(text), -1), first=True)
        loss = entries.new_zeros(())
        for taken, allowed in zip(actions.unbind(1), legal.unbind(1), strict=True):
            live = (taken != Action.NOP).nonzero().squeeze(1)
            state = hidden[live, top[live]]
            scores = self.policy(state).masked_fill(~allowed[live], FORBIDDEN)
            loss = loss + cross_entropy(scores, taken[live], reduction="sum")
            gen = taken[live] == Action.GEN
            rows = live[gen]
            symbols = text[rows, generated[rows]]
            loss = loss + cross_entropy(self.output(state[gen]), symbols, reduction="sum")
            generated[rows] += 1
            going = generated[rows] < text.shape[1]
            rows, symbols = rows[going], symbols[going]
            reduce, nt = ((taken == action).nonzero().squeeze(1) for action in (Action.REDUCE, Action.NT))
            pushed = [self.embed(symbols), self.nonterminal.expand(len(nt), -1)]
            if len(reduce):
                first = opened[reduce, depth[reduce]]
                pushed.append(self._compose(entries, reduce, first + 1, top[reduce]))
                top[reduce] = first - 1
                depth[reduce] -= 1
            depth[nt] += 1
            opened[nt, depth[nt]] = top[nt] + 1
            rows = torch.cat((rows, nt, reduce))
            if len(rows):
                top[rows] += 1
                self._push((entries, hidden, cells), rows, top[rows], torch.cat(pushed))
        return loss

    def _push(self, stacks, rows, place, entry, first: bool = False) -> None:
        """Push entries (n, H) of some rows at places (n,) of their stacks."""
        _, hidden, cells = stacks
        below = None if first else (hidden[rows, place - 1], cells[rows, place - 1])
        new_hidden, new_cells = self.cell(entry, below)
        for stack, new in zip(stacks, (entry, new_hidden, new_cells), strict=True):
            stack.index_put_((rows, place), new)

    def _compose(self, entries, rows, first, last) -> Tensor:
        """(n, H) phrases of the children at places from first to last."""
        lengths = last - first + 1
        columns = torch.arange(int(lengths.max()))
        children = entries[rows[:, None], (first[:, None] + columns).clamp(max=entries.shape[1] - 1)]
        packed = nn.utils.rnn.pack_padded_sequence(children, lengths, batch_first=True, enforce_sorted=False)
        _, (ends, _) = self.reader(packed)
        return torch.tanh(self.phrase(torch.cat((ends[0], ends[1]), dim=1)))
