"""The GRU encoder and the conditional GRU decoder with deep output of Nematus (Sennrich et al. 2017), base of SDAtt."""

import torch
from torch import nn

from ..recurrent.cells import GRUCell
from ..recurrent.decoder import RecurrentDecoder
from ..recurrent.dropout import RecurrentDropout
from ..recurrent.encoder import RecurrentEncoder
from ..recurrent.source_attention import Memory

# masks of states: for gates and candidate of the first GRU, the attention, gates and candidate of the second
MASKS = 5


class GRUEncoder(RecurrentEncoder):
    """Bidirectional GRU."""

    layers = nn.GRU


class ConditionalGRUDecoder(RecurrentDecoder):
    """Two GRUs a step with the attention between them: s' = GRU1(y, s), context of s', s = GRU2(context, s').

    The deep output L_o tanh(L_w y + L_d s + L_c c + b) is computed for all steps at once (Chen et al. 2018, eqs. 4, 8,
    13 and 14).

    Args:
        context_size: of the result of the attention, which enters the deep output.
        fed_context: size of the context that enters GRU2; None for the same.
    """

    def __init__(self, dictionary, args, embed_tokens, attention, context_size: int, fed_context: int | None = None):
        embedding, hidden = args.decoder_embed_dim, args.decoder_hidden_size
        super().__init__(dictionary, args, embed_tokens, attention, embedding)
        self.recurrent_dropout = RecurrentDropout(args.recurrent_dropout, type(self).__name__)
        self.initial = nn.Linear(2 * args.encoder_hidden_size, hidden)
        self.before = GRUCell(0, hidden, ahead_size=embedding)
        self.after = GRUCell(fed_context or context_size, hidden)
        self.deep_output = nn.Linear(embedding + hidden + context_size, embedding)

    def initial_state(self, encoder_out):
        memory = encoder_out["memory"]
        hidden = self.first_hidden(self.initial, memory)
        return {
            "hidden": hidden,
            "attention": self.attention.initial_state(memory),
            "masks": self.recurrent_dropout.masks(MASKS, hidden),
        }

    def first_hidden(self, layer: nn.Linear, memory: Memory):
        """tanh(W h + b) of the mean annotation h; (B, H)."""
        # annotations of padding are zeros
        keep = (~memory["padding"]).unsqueeze(2).to(memory["values"])
        mean = (memory["values"] * keep).sum(dim=1) / keep.sum(dim=1)
        return torch.tanh(layer(self.dropout(mean)))

    def project_ahead(self, embedded):
        return self.before.project_ahead(embedded)

    def step(self, ahead, state, memory):
        masks = state["masks"]
        hidden, query = self.attend_with(self.before, state["hidden"], ahead, masks)
        context, extra, attention = self.attention(query, memory, state["attention"])
        (hidden,) = self.after(context, (hidden,), masks=masks[3:])
        state = {"hidden": hidden, "attention": attention, "masks": masks}
        return torch.cat((hidden, context), dim=1), extra, state

    @staticmethod
    def attend_with(before: GRUCell, hidden, ahead, masks):
        """State after the first GRU, and the part of it that attends, after dropout: (B, H) each."""
        (hidden,) = before(None, (hidden,), ahead, masks[:2])
        return hidden, hidden * masks[2] if masks else hidden

    def read_out(self, outputs, embedded):
        # embeddings have had their dropout before
        parts = torch.cat((embedded, self.dropout(outputs)), dim=2)
        return self.dropout(torch.tanh(self.deep_output(parts)))
