"""Dependency units: what stands around a word in the tree, as one vector (Chen et al., EMNLP 2017).

The unit of a word is its parent, its siblings and its children, each in the order of the sentence; a convolutional
network makes one vector of their embeddings. What the paper of SDAtt (Chen et al. 2018, Sec. 4.2) does not say of it
follows what is known of the model of 2017.
"""

import torch
from torch import Tensor, nn

SMALLEST_UNIT = 10
"""Two convolutions of width 3, each followed by a pooling of width 2, leave one row of ten."""

_BLOCK = 64


def dependency_units(parents: Tensor, starts: Tensor, size: int) -> Tensor:
    """(B, T, size) long, the words in the unit of every word by the column of their first piece; -1 after the last.

    A root has no parent; other roots are its siblings. Of a unit that is too large, the parent stays, and of the others
    those that are fewest words away, on equal terms the earlier. Only first pieces have units.

    Args:
        parents: (B, T) column of the first piece of the head word, a root's its own; negative: no parse.
        starts: (B, T), True at the first piece of every word, EOS excluded.
        size: members to keep.
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
    nearest = (away * len(columns) + columns).topk(min(size, len(columns)), dim=2, largest=False).indices
    kind = kind.gather(2, nearest)
    order = (kind * len(columns) + nearest).argsort(dim=2)
    units = nearest.masked_fill(kind == none, -1).gather(2, order)
    return nn.functional.pad(units, (0, size - units.shape[2]), value=-1)


class DependencyUnits(nn.Module):
    """A vector of the dependency unit of every token; pieces of a word have that of the word.

    The vector of a word in a unit is the mean of the embeddings of its pieces. Units are filled up with one learned
    vector to their full size, at least `SMALLEST_UNIT`, of which those of EOS, of padding and of sentences without a
    parse wholly consist. With `depthwise`, each dimension of the embeddings is convolved by itself.
    """

    def __init__(self, embedding: int, size: int = SMALLEST_UNIT, depthwise: bool = False):
        if size < SMALLEST_UNIT:
            raise ValueError(f"units of {size} words; the convolutions need at least {SMALLEST_UNIT}")
        super().__init__()
        self.size = size
        self.filler = nn.Parameter(torch.zeros(embedding))
        groups = embedding if depthwise else 1
        self.convolutions = nn.ModuleList(nn.Conv1d(embedding, embedding, 3, groups=groups) for _ in range(2))

    def forward(self, embedded: Tensor, word_mask: Tensor, word_starts: Tensor, parents: Tensor) -> Tensor:
        """(B, T, E) vectors of the units.

        Args:
            embedded: (B, T, E) embeddings of tokens.
            word_mask, word_starts: (B, T), True at pieces of words, neither padding nor EOS, and at the first of each
                word.
            parents: (B, T), see `dependency_units`.
        """
        starts = word_mask & word_starts.bool()
        # on a GPU, the host would wait to hear how many words there are: of tokens, there are at least as many
        words = starts.numel() if starts.is_cuda else int(starts.sum())
        # words of the batch are numbered through; what is not a word has the number after the last
        number = (starts.flatten().cumsum(0) - 1).view_as(starts).masked_fill(~word_mask, words)
        flat = number.flatten()
        pieces = torch.zeros(words + 1, device=embedded.device, dtype=embedded.dtype)
        pieces = pieces.index_add(0, flat, torch.ones_like(flat, dtype=embedded.dtype))
        sums = embedded.new_zeros(words + 1, embedded.shape[2]).index_add(0, flat, embedded.flatten(0, 1))
        vectors = torch.cat((sums[:-1] / pieces[:-1].clamp(min=1).unsqueeze(1), self.filler.to(embedded).unsqueeze(0)))

        units = dependency_units(parents, starts, self.size)
        members = number.gather(1, units.clamp(min=0).flatten(1)).view_as(units).masked_fill(units < 0, words)
        # where words begin; for a GPU, finding a known number of places needs no waiting
        place = torch.zeros_like(pieces, dtype=torch.long)
        place.scatter_(0, flat.where(starts.flatten(), words), torch.arange(len(flat), device=flat.device))
        members = members.flatten(0, 1).index_select(0, place[:words])  # (words, size)
        # one unit without members for all that is not a word, and more of them until there are as many units as in
        # other batches: on a CPU, a convolution keeps memory for every number of inputs that it has seen
        empty = 1 + (-words - 1) % _BLOCK
        members = torch.cat((members, members.new_full((empty, self.size), words)))
        return self._convolve(vectors[members])[number]

    def _convolve(self, units: Tensor) -> Tensor:
        """(N, size, E) -> (N, E)."""
        x = units.transpose(1, 2)
        for convolution in self.convolutions:
            x = nn.functional.max_pool1d(torch.tanh(convolution(x)), 2)
        return x.mean(dim=2)
