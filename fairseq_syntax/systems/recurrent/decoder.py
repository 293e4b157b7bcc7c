"""Decoders of recurrent models, which go step by step, in training as in generation."""

from abc import abstractmethod
from typing import Dict, List

import torch
from fairseq import utils
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor, nn

from .cells import LSTMCell
from .dropout import dropout_of
from .source_attention import SourceAttention


class RecurrentDecoder(FairseqIncrementalDecoder):
    """Base of recurrent decoders: the loop over the steps, and its state. Subclasses define the step.

    A state is nested dicts, lists and tuples of tensors, all with the batch first.
    """

    def __init__(self, dictionary, args, embed_tokens: nn.Embedding, attention: SourceAttention, features: int):
        super().__init__(dictionary)
        self.embed_tokens = embed_tokens
        self.attention = attention
        self.dropout = dropout_of(args, self)
        self.embedding_dropout = dropout_of(args, self, "embedding_dropout")
        self.output_projection = nn.Linear(features, len(dictionary), bias=args.output_bias)
        if not args.untied_output:
            self.output_projection.weight = embed_tokens.weight
        self.need_attn = True
        self._max_positions = args.max_target_positions

    def embed(self, tokens: Tensor) -> Tensor:
        """Embeddings (B, S, E) of the words before (B, S)."""
        return self.embedding_dropout(self.embed_tokens(tokens))

    @abstractmethod
    def initial_state(self, encoder_out) -> Dict[str, object]:
        """State before the first step."""

    @abstractmethod
    def project_ahead(self, embedded: Tensor) -> Tensor:
        """Project the words before, (S, B, E) -> (S, B, …), for all steps at once."""

    @abstractmethod
    def step(self, ahead: Tensor, state: Dict[str, object], memory: Dict[str, Tensor]):
        """One target position, after `ahead` (B, …) of `project_ahead`, the state of the step before, and the source.

        Returns (output (B, …); extra results of the attention, name -> (B, …); the new state).
        """

    def read_out(self, outputs: Tensor, embedded: Tensor) -> Tensor:
        """Compute features (B, S, C) from the outputs (B, S, …) of all steps and the words before (B, S, E)."""
        return outputs

    def extract_features(self, prev_output_tokens, encoder_out, incremental_state=None, **unused):
        """Run all steps, or with `incremental_state` those that are new.

        Returns (features (B, S, C); extra: "attn" [(B, S, T)] in eval mode, and other results of the attention, (B, S,
        …)).
        """
        state = self.get_incremental_state(incremental_state, "cached_state")
        if state is None:
            state = self.initial_state(encoder_out)
        else:
            prev_output_tokens = prev_output_tokens[:, -1:]
        embedded = self.embed(prev_output_tokens)
        outputs, extras = [], []
        for cell in (cells := [module for module in self.modules() if isinstance(module, LSTMCell)]):
            cell.fused = cell.for_kernel()
        try:
            for ahead in self.project_ahead(embedded.transpose(0, 1)).unbind(0):
                output, extra, state = self.step(ahead, state, encoder_out["memory"])
                outputs.append(output)
                extras.append(extra)
        finally:  # after errors, too: a model with these tensors cannot be copied
            for cell in cells:
                cell.fused = None
        self.set_incremental_state(incremental_state, "cached_state", state)
        extra = {"attn": [None]}
        if not self.training and self.need_attn:
            extra = {name: torch.stack([step[name] for step in extras], dim=1) for name in extras[0]}
            extra["attn"] = [extra["attn"]]
        return self.read_out(torch.stack(outputs, dim=1), embedded), extra

    def output_layer(self, features):
        """Scores of the vocabulary (…, V)."""
        return self.output_projection(features)

    def forward(self, prev_output_tokens, encoder_out=None, incremental_state=None, features_only=False, **unused):
        """Scores (B, S, V), or features (B, S, C), and a dict of extras, see `extract_features`."""
        x, extra = self.extract_features(prev_output_tokens, encoder_out, incremental_state)
        return (x if features_only else self.output_layer(x)), extra

    def reorder_incremental_state(self, incremental_state, new_order):
        """Put the hypotheses in a new order."""
        state = self.get_incremental_state(incremental_state, "cached_state")
        if state is not None:
            state = utils.apply_to_sample(lambda tensor: tensor.index_select(0, new_order), state)
            self.set_incremental_state(incremental_state, "cached_state", state)

    def max_positions(self):
        """Longest output."""
        return self._max_positions

    def make_generation_fast_(self, need_attn=False, **kwargs):
        """Called before generation; attention is collected only where it will be shown."""
        self.need_attn = need_attn


class InputFeedingDecoder(RecurrentDecoder):
    """Stacked LSTM with input feeding and any `SourceAttention` (eqs. 2-5, 18).

    u_t = tanh(W_u [h_t; context_t]) enters the output layer, and the first layer at the next step. Only what depends
    on u_{t-1} is done in the loop over the steps.
    """

    def __init__(self, dictionary, args, embed_tokens, attention, context_size: int):
        hidden, output = args.decoder_hidden_size, args.decoder_embed_dim
        super().__init__(dictionary, args, embed_tokens, attention, output)
        self.cells = nn.ModuleList(
            LSTMCell(output if layer == 0 else hidden, hidden, ahead_size=args.decoder_embed_dim if layer == 0 else 0)
            for layer in range(args.decoder_layers)
        )
        # the encoder's last states start the decoder; of another size, they need a bridge
        self.bridges = None
        if 2 * args.encoder_hidden_size != hidden:
            self.bridges = nn.ModuleList(nn.Linear(2 * args.encoder_hidden_size, hidden) for _ in range(2))
        self.output_state = nn.Linear(hidden + context_size, output, bias=False)  # W_u

    def initial_state(self, encoder_out):
        final = encoder_out["final"]
        if self.bridges is not None:
            final = [bridge(state) for bridge, state in zip(self.bridges, final, strict=True)]
        return {
            "layers": [tuple(state[:, layer] for state in final) for layer in range(len(self.cells))],
            "feed": final[0].new_zeros(len(final[0]), self.output_state.out_features),
            "attention": self.attention.initial_state(encoder_out["memory"]),
        }

    def project_ahead(self, embedded):
        return self.cells[0].project_ahead(embedded)

    def step(self, ahead, state, memory):
        layers: List[tuple] = []
        x = state["feed"]
        for cell, before in zip(self.cells, state["layers"], strict=True):
            if layers:
                x = self.dropout(x)
            layers.append(cell(x, before, ahead))
            x, ahead = layers[-1][0], None
        context, extra, attention = self.attention(x, memory, state["attention"])
        x = self.dropout(torch.tanh(self.output_state(torch.cat((x, context), dim=1))))
        return x, extra, {"layers": layers, "feed": x, "attention": attention}
