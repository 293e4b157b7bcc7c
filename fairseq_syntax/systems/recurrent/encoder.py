"""The bidirectional encoder of recurrent models."""

from typing import Dict, Optional

import torch
from fairseq import utils
from fairseq.models import FairseqEncoder
from torch import Tensor, nn

from ...data.collating import SourceSyntax, StrictSyntax
from .dropout import RecurrentDropout, dropout_of, run_gru
from .rotation import Rotation
from .source_attention import SourceBatch, SourceMemory


class RecurrentEncoder(FairseqEncoder):
    """Bidirectional LSTM (eq. 1), and the memory that the decoder attends to.

    Sentences may be padded on either side; everything returned has the columns of `src_tokens`.
    """

    layers: type[nn.RNNBase] = nn.LSTM

    def __init__(
        self, dictionary, args, embed_tokens: nn.Embedding, memory: SourceMemory, input_size: Optional[int] = None
    ):
        super().__init__(dictionary)
        self.embed_tokens = embed_tokens
        self.embedding_dropout = dropout_of(args, self, "embedding_dropout")
        self.annotation_dropout = dropout_of(args, self, "annotation_dropout")
        self.recurrent_dropout = RecurrentDropout(getattr(args, "recurrent_dropout", 0.0), type(self).__name__)
        self.rnn = self.build_layers(args, input_size or args.encoder_embed_dim)
        self.memory = memory
        self._max_positions = args.max_source_positions

    def build_layers(self, args, input_size: int) -> nn.RNNBase:
        """The recurrent layers."""
        return self.layers(
            input_size,
            args.encoder_hidden_size,
            args.encoder_layers,
            dropout=args.dropout if args.encoder_layers > 1 else 0.0,
            bidirectional=True,
            batch_first=True,
        )

    def embed(self, source: SourceBatch) -> Tensor:
        """Input (B, T, E) of the recurrent layers."""
        return self.embed_tokens(source.tokens)

    def run(self, layers: nn.RNNBase, x: Tensor, source: SourceBatch):
        """Run bidirectional layers on x (B, T, E), padded as `source` is.

        Returns (annotations (B, T, 2H), 0 at padding; final states, each (B, layers, 2H), the output first).
        """
        x = self.embedding_dropout(source.rotation.right(x))
        if self.recurrent_dropout.active:
            x, final = run_gru(layers, x, ~source.rotation.right(source.padding_mask), self.recurrent_dropout)
        else:
            x, final = source.rotation.run(layers, x)
        x = source.rotation.back(x)
        # (layers x 2, B, H) -> (B, layers, 2H)
        final = [
            state.unflatten(0, (-1, 2)).permute(2, 0, 1, 3).flatten(2)
            for state in (final if isinstance(final, tuple) else (final,))
        ]
        return self.annotation_dropout(x), final

    def source(self, src_tokens: Tensor, src_syntax: Optional[SourceSyntax] = None) -> SourceBatch:
        """The `SourceBatch` of a batch; see `forward`."""
        padding_mask = src_tokens.eq(self.dictionary.pad())
        word_mask = ~padding_mask & src_tokens.ne(self.dictionary.eos())
        return SourceBatch(src_tokens, padding_mask, word_mask, StrictSyntax(src_syntax or {}), Rotation(padding_mask))

    def annotate(self, source: SourceBatch):
        """Annotations S (B, T, 2H), and final states, each (B, layers, 2H), the output first."""
        return self.run(self.rnn, self.embed(source), source)

    def remember(self, source: SourceBatch) -> Dict[str, object]:
        """The "memory" for the attention, and the last states, "final": batch first."""
        states, final = self.annotate(source)
        return {"memory": self.memory(states, source), "final": final}

    def forward(self, src_tokens, src_lengths=None, src_syntax: Optional[SourceSyntax] = None, **unused):
        """Encode (B, T) tokens, padded on either side, with trees for the memory of models that need them.

        Returns a dict whose tensors have the batch first: "memory", "final" (the encoder's last states),
        "encoder_padding_mask" and "sentence", the number of each row's sentence in the batch.
        """
        source = self.source(src_tokens, src_syntax)
        return {
            **self.remember(source),
            "encoder_padding_mask": source.padding_mask,
            "sentence": torch.arange(len(src_tokens), device=src_tokens.device),
        }

    def reorder_encoder_out(self, encoder_out, new_order):
        """Rows in a new order. Beam search mostly reorders within a sentence, whose rows are all the same."""
        sentence = encoder_out["sentence"].index_select(0, new_order)
        if torch.equal(sentence, encoder_out["sentence"]):
            return encoder_out
        return utils.apply_to_sample(lambda tensor: tensor.index_select(0, new_order), encoder_out)

    def max_positions(self):
        """Longest sentence, EOS included."""
        return self._max_positions
