"""SDRNMT: translation with dependency units (Chen et al., EMNLP 2017), in its two forms.

In the first, the encoder reads the vector of a word's unit beside the word. In the second, there are two sequences of
annotations, over words and over units, each with a decoder state of its own, and one distribution of attention.
"""

from typing import Optional

import torch
from torch import Tensor, nn

from ..recurrent.cells import GRUCell
from ..recurrent.encoder import RecurrentEncoder
from ..recurrent.rotation import Rotation
from ..recurrent.source_attention import Source
from .additive_attention import AdditiveMemory
from .conditional_gru import MASKS, ConditionalGRUDecoder
from .dependency_units import DependencyUnits
from .syntax_directed_attention import MissingParse, refuse_unparsed
from .two_sequence_attention import TwoSequenceAttention

UNIT_INPUTS = ("parent_pieces", "word_starts")
"""What of the trees units are made of."""


class UnitEncoder(RecurrentEncoder):
    """Reads [V_x; V_U]: the embedding of a token, and the vector of its word's unit."""

    def __init__(self, dictionary, args, embed_tokens, memory, input_size: Optional[int] = None):
        embedding = args.encoder_embed_dim
        super().__init__(dictionary, args, embed_tokens, memory, input_size or 2 * embedding)
        self.units = DependencyUnits(embedding, args.sdatt_sdr_unit_size, args.sdatt_sdr_depthwise)
        self.missing = args.sdatt_missing

    def embed_both(self, source: Source) -> tuple[Tensor, Tensor]:
        """(V_x, V_U), (B, T, E) each.

        Raises ValueError: no trees; or a sentence without a parse, unless missing parses are allowed.
        """
        starts, parents = source.syntax["word_starts"], source.syntax["parent_pieces"]
        if self.missing == MissingParse.error:
            refuse_unparsed(((parents < 0) & source.word_mask).any(dim=1), "global")
        embedded = self.embed_tokens(source.tokens)
        return embedded, self.units(embedded, source.word_mask, starts, parents)

    def embed(self, source):
        return torch.cat(self.embed_both(source), dim=2)


class TwoSequenceEncoder(UnitEncoder):
    """Two encoders, over words and over units; "memory" then has one of each."""

    def __init__(self, dictionary, args, embed_tokens, memory: "TwoMemories"):
        super().__init__(dictionary, args, embed_tokens, memory, args.encoder_embed_dim)
        self.unit_rnn = self.build_layers(args, args.encoder_embed_dim)

    def embed(self, source):
        return self.embed_both(source)[0]

    def remember(self, source):
        words, units = self.embed_both(source)
        rotation = Rotation(source.padding_mask)
        words, final = self.run(self.rnn, words, source.padding_mask, rotation)
        units, _ = self.run(self.unit_rnn, units, source.padding_mask, rotation)
        memory = {"words": self.memory.words(words, source), "units": self.memory.units(units, source)}
        return {"memory": memory, "final": final}


class TwoMemories(nn.Module):
    """A memory of each sequence of annotations."""

    def __init__(self, source_size: int, attention_size: int):
        super().__init__()
        self.words = AdditiveMemory(source_size, attention_size)
        self.units = AdditiveMemory(source_size, attention_size)
        self.context_size = 2 * source_size


class TwoStateDecoder(ConditionalGRUDecoder):
    """A conditional GRU over each sequence of annotations; the deep output has both states and both contexts."""

    def __init__(self, dictionary, args, embed_tokens, attention: TwoSequenceAttention, context_size: int):
        fed = context_size // 2
        super().__init__(dictionary, args, embed_tokens, attention, context_size, fed)
        embedding, hidden = args.decoder_embed_dim, args.decoder_hidden_size
        self.unit_initial = nn.Linear(2 * args.encoder_hidden_size, hidden)
        self.unit_before = GRUCell(0, hidden, ahead_size=embedding)
        self.unit_after = GRUCell(fed, hidden)
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
        of_words, of_units = ahead.chunk(2, dim=1)
        masks, unit_masks = state["masks"][:MASKS], state["masks"][MASKS:]
        words, query = self.attend_with(self.before, state["hidden"], of_words, masks)
        units, unit_query = self.attend_with(self.unit_before, state["units"], of_units, unit_masks)
        context, found = self.attention(query, unit_query, memory)
        (words,) = self.after(context[:, : self.fed_context], (words,), masks=masks[3:])
        (units,) = self.unit_after(context[:, self.fed_context :], (units,), masks=unit_masks[3:])
        state = {"hidden": words, "units": units, "masks": state["masks"]}
        return torch.cat((words, units, context), dim=1), found, state
