"""SDRNMT: translation with dependency units, the neighbours of a word in the tree (Chen et al., EMNLP 2017).

The unit of a word is its parent, its siblings and its children, each in the order of the sentence; a convolutional
network makes one vector of their embeddings. In the first form, the encoder reads the vector of a word's unit beside
the word. In the second, there are two sequences of annotations, over words and over units, each with a decoder state of
its own, and one distribution of attention. Where the paper of SDAtt (Chen et al. 2018, Sec. 4.2) is silent, it
follows the model of 2017.
"""

from typing import Optional

import torch
from torch import Tensor, nn

from ..recurrent.cells import GRUCell
from ..recurrent.source_attention import Memory, SourceBatch
from .attention import AdditiveAttention, AdditiveMemory, global_weights
from .conditional_gru import MASKS, ConditionalGRUDecoder, GRUEncoder

UNIT_INPUTS = ("parent_pieces", "word_starts")
"""Inputs that units are made of."""

UNIT_SIZE = 10
"""Words in a unit: two convolutions of width 3, each followed by a pooling of width 2, leave one row of ten."""

_BLOCK = 64


def dependency_units(parents: Tensor, starts: Tensor) -> Tensor:
    """Units (B, T, `UNIT_SIZE`), long: the words, by the column of their first piece, and -1 after the last.

    A root has no parent; other roots are its siblings. Of a unit that is too large, the parent stays, and of the others
    those that are fewest words away, on equal terms the earlier. Only first pieces have units.

    Args:
        parents: (B, T) column of the first piece of the head word, a root's its own; negative: no parse.
        starts: (B, T), True at the first piece of every word, EOS excluded.
    """
    columns = torch.arange(parents.shape[1], device=parents.device)
    parents = parents.long()
    root = starts & (parents == columns)
    pairs = starts.unsqueeze(2) & starts.unsqueeze(1) & (columns.unsqueeze(1) != columns)  # (B, T, T)
    head_of = parents.masked_fill(root, -1)
    has_head = head_of >= 0
    # roots hang from one node above them, outside the sentence
    above = torch.where(root, len(columns), head_of)
    hangs = root | has_head
    is_parent = head_of.unsqueeze(2) == columns
    is_sibling = (above.unsqueeze(2) == above.unsqueeze(1)) & hangs.unsqueeze(2) & hangs.unsqueeze(1)
    is_child = head_of.unsqueeze(1) == columns.unsqueeze(1)
    none = 3
    kind = torch.full_like(pairs, none, dtype=torch.long)
    for number, relation in ((2, is_child), (1, is_sibling), (0, is_parent)):
        kind = kind.masked_fill(pairs & relation, number)

    number = starts.cumsum(dim=1)  # of the word
    far = len(columns)
    away = (number.unsqueeze(2) - number.unsqueeze(1)).abs()
    away = away.masked_fill(kind == 0, 0).masked_fill(kind == none, far)
    # every key is another: the first part decides, then the order of the sentence
    nearest = (away * len(columns) + columns).topk(min(UNIT_SIZE, len(columns)), dim=2, largest=False).indices
    kind = kind.gather(2, nearest)
    order = (kind * len(columns) + nearest).argsort(dim=2)
    units = nearest.masked_fill(kind == none, -1).gather(2, order)
    return nn.functional.pad(units, (0, UNIT_SIZE - units.shape[2]), value=-1)


class DependencyUnits(nn.Module):
    """Vectors of dependency units; all pieces of a word have that of the word.

    The vector of a word in a unit is the mean of the embeddings of its pieces. One learned vector fills units up to
    `UNIT_SIZE`; at EOS, at padding and in sentences without a parse, they consist of it alone.
    """

    def __init__(self, embedding: int):
        super().__init__()
        self.filler = nn.Parameter(torch.zeros(embedding))
        self.convolutions = nn.ModuleList(nn.Conv1d(embedding, embedding, 3) for _ in range(2))

    def forward(self, embedded: Tensor, word_mask: Tensor, word_starts: Tensor, parents: Tensor, most: int) -> Tensor:
        """(B, T, E) vectors of the units.

        Args:
            embedded: (B, T, E) embeddings of tokens.
            word_mask, word_starts: (B, T), True at pieces of words, neither padding nor EOS, and at the first of each
                word.
            parents: (B, T), see `dependency_units`.
            most: upper bound of the number of words.
        """
        starts = word_mask & word_starts.bool()
        # `most` is an upper bound, so the host need not wait for a GPU to count words
        words = most if starts.is_cuda else int(starts.sum())
        # words are numbered over the batch; all else has the number after the last
        number = (starts.flatten().cumsum(0) - 1).view_as(starts).masked_fill(~word_mask, words)
        flat = number.flatten()
        pieces = torch.zeros(words + 1, device=embedded.device, dtype=embedded.dtype)
        pieces = pieces.index_add(0, flat, torch.ones_like(flat, dtype=embedded.dtype))
        sums = embedded.new_zeros(words + 1, embedded.shape[2]).index_add(0, flat, embedded.flatten(0, 1))
        vectors = torch.cat((sums[:-1] / pieces[:-1].clamp(min=1).unsqueeze(1), self.filler.to(embedded).unsqueeze(0)))

        units = dependency_units(parents, starts)
        members = number.gather(1, units.clamp(min=0).flatten(1)).view_as(units).masked_fill(units < 0, words)
        # starts of words, found without waiting for a GPU to count them
        place = torch.zeros_like(pieces, dtype=torch.long)
        place.scatter_(0, flat.where(starts.flatten(), words), torch.arange(len(flat), device=flat.device))
        members = members.flatten(0, 1).index_select(0, place[:words])  # (words, UNIT_SIZE)
        # at least one empty unit, for all that is not a word, and more up to a multiple of `_BLOCK`: on a CPU,
        # convolutions keep memory for every number of inputs that they have seen
        empty = 1 + (-words - 1) % _BLOCK
        members = torch.cat((members, members.new_full((empty, UNIT_SIZE), words)))
        return self._convolve(vectors[members])[number]

    def _convolve(self, units: Tensor) -> Tensor:
        """(N, size, E) -> (N, E)."""
        x = units.transpose(1, 2)
        for convolution in self.convolutions:
            x = nn.functional.max_pool1d(torch.tanh(convolution(x)), 2)
        return x.mean(dim=2)


class UnitEncoder(GRUEncoder):
    """Encoder of [V_x; V_U]: the embedding of a token, and the vector of its word's unit."""

    def __init__(self, dictionary, args, embed_tokens, memory, input_size: Optional[int] = None):
        embedding = args.encoder_embed_dim
        super().__init__(dictionary, args, embed_tokens, memory, input_size or 2 * embedding)
        self.units = DependencyUnits(embedding)

    def embed_both(self, source: SourceBatch) -> tuple[Tensor, Tensor]:
        """(V_x, V_U), (B, T, E) each. Raises ValueError: no trees."""
        starts, parents = source.syntax["word_starts"], source.syntax["parent_pieces"]
        embedded = self.embed_tokens(source.tokens)
        return embedded, self.units(embedded, source.word_mask, starts, parents, int(source.rotation.lengths.sum()))

    def embed(self, source):
        return torch.cat(self.embed_both(source), dim=2)


class TwoSequenceEncoder(UnitEncoder):
    """Two encoders, over words and over units; "memory" then has one of each."""

    def __init__(self, dictionary, args, embed_tokens, memory: "TwoMemories"):
        super().__init__(dictionary, args, embed_tokens, memory, args.encoder_embed_dim)
        self.unit_rnn = self.build_layers(args, args.encoder_embed_dim)

    def remember(self, source):
        words, units = self.embed_both(source)
        words, final = self.run(self.rnn, words, source)
        units, _ = self.run(self.unit_rnn, units, source)
        memory = {"words": self.memory.words(words, source), "units": self.memory.units(units, source)}
        return {"memory": memory, "final": final}


class TwoMemories(nn.Module):
    """A memory of each sequence of annotations."""

    def __init__(self, size: int):
        super().__init__()
        self.words = AdditiveMemory(size)
        self.units = AdditiveMemory(size)
        self.context_size = 2 * size


class TwoSequenceAttention(nn.Module):
    """softmax((e(s, h) + e(s', d)) / 2): both scores are additive, with parameters of their own."""

    def __init__(self, query_size: int, attention_size: int):
        super().__init__()
        self.words = AdditiveAttention(query_size, attention_size)
        self.units = AdditiveAttention(query_size, attention_size)

    def forward(self, words: Tensor, units: Tensor, memory: dict[str, Memory]) -> tuple[Tensor, dict[str, Tensor]]:
        """Attend by (B, H) states to "words" and "units", each of an `AdditiveMemory`.

        Returns ([context of words; context of units] (B, 2C); extra: "attn" (B, T)).
        """
        scores = 0.5 * self.words.scores(words, memory["words"]) + 0.5 * self.units.scores(units, memory["units"])
        weights = global_weights(scores, memory["words"]["padding"])
        rows = weights.unsqueeze(1).to(memory["words"]["values"].dtype)
        contexts = [torch.bmm(rows, memory[name]["values"]).squeeze(1) for name in ("words", "units")]
        return torch.cat(contexts, dim=1), {"attn": weights}


class TwoStateDecoder(ConditionalGRUDecoder):
    """A conditional GRU over each sequence of annotations; the deep output has both states and both contexts."""

    def __init__(self, dictionary, args, embed_tokens, attention: TwoSequenceAttention, context_size: int):
        self.word_size = context_size // 2
        super().__init__(dictionary, args, embed_tokens, attention, context_size, self.word_size)
        embedding, hidden = args.decoder_embed_dim, args.decoder_hidden_size
        self.unit_initial = nn.Linear(2 * args.encoder_hidden_size, hidden)
        self.unit_before = GRUCell(0, hidden, ahead_size=embedding)
        self.unit_after = GRUCell(self.word_size, hidden)
        self.deep_output = nn.Linear(embedding + 2 * hidden + context_size, embedding)

    def initial_state(self, encoder_out):
        words, units = encoder_out["memory"]["words"], encoder_out["memory"]["units"]
        hidden = self.first_hidden(self.initial, words)
        return {
            "hidden": hidden,
            "units": self.first_hidden(self.unit_initial, units),
            "masks": self.recurrent_dropout.masks(2 * MASKS, hidden),
        }

    def project_ahead(self, embedded):
        return torch.cat((self.before.project_ahead(embedded), self.unit_before.project_ahead(embedded)), dim=-1)

    def step(self, ahead, state, memory):
        word_ahead, unit_ahead = ahead.chunk(2, dim=1)
        masks, unit_masks = state["masks"][:MASKS], state["masks"][MASKS:]
        words, query = self.attend_with(self.before, state["hidden"], word_ahead, masks)
        units, unit_query = self.attend_with(self.unit_before, state["units"], unit_ahead, unit_masks)
        context, extra = self.attention(query, unit_query, memory)
        (words,) = self.after(context[:, : self.word_size], (words,), masks=masks[3:])
        (units,) = self.unit_after(context[:, self.word_size :], (units,), masks=unit_masks[3:])
        state = {"hidden": words, "units": units, "masks": state["masks"]}
        return torch.cat((words, units, context), dim=1), extra, state
