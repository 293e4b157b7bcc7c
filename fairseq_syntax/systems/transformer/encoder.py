"""The Transformer encoder into which models with special attention plug their layers."""

from abc import abstractmethod
from typing import Optional

from fairseq.distributed import fsdp_wrap
from fairseq.models.transformer import TransformerEncoderBase
from fairseq.modules import MultiheadAttention
from fairseq.modules.checkpoint_activations import checkpoint_wrapper
from fairseq.modules.transformer_layer import TransformerEncoderLayerBase
from torch import Tensor

from ...data.collating import SourceSyntax, StrictSyntax


class SyntaxEncoderLayer(TransformerEncoderLayerBase):
    """fairseq's encoder layer with another self-attention; the rest, and all parameter names, are the same.

    Subclasses define `attention`, its options beyond fairseq's, and `attend`.
    """

    uses_syntax = True
    attention: type[MultiheadAttention]

    def attention_options(self, cfg) -> dict:
        """Further arguments of `attention`."""
        return {}

    def build_self_attention(self, embed_dim, cfg):
        return self.attention(
            embed_dim,
            cfg.encoder.attention_heads,
            dropout=cfg.attention_dropout,
            q_noise=self.quant_noise,
            qn_block_size=self.quant_noise_block_size,
            **self.attention_options(cfg),
        )

    @abstractmethod
    def attend(self, x: Tensor, encoder_padding_mask: Optional[Tensor], syntax: dict):
        """Self-attention on (T, B, C); returns (output, dict of extra results). Subclasses override it."""

    def forward(self, x, encoder_padding_mask, attn_mask=None, syntax=None):
        """As in fairseq; with `syntax`, a dict for `attend`, returns (output, extra dict of `attend`)."""
        if syntax is None:
            return super().forward(x, encoder_padding_mask, attn_mask)
        residual = x
        if self.normalize_before:
            x = self.self_attn_layer_norm(x)
        x, extra = self.attend(x, encoder_padding_mask, syntax)
        x = self.residual_connection(self.dropout_module(x), residual)
        if not self.normalize_before:
            x = self.self_attn_layer_norm(x)
        residual = x
        if self.normalize_before:
            x = self.final_layer_norm(x)
        x = self.activation_dropout_module(self.activation_fn(self.fc1(x)))
        x = self.residual_connection(self.dropout_module(self.fc2(x)), residual)
        if not self.normalize_before:
            x = self.final_layer_norm(x)
        return x, extra


class SyntaxEncoder(TransformerEncoderBase):
    """fairseq's encoder with some layers replaced, which receive the result of `layer_syntax`.

    Extra results of the layers are in the output under "syntax", for criterions; they do not depend on the beam.
    """

    def __init__(self, cfg, dictionary, embed_tokens):
        self._layers_built = 0
        super().__init__(cfg, dictionary, embed_tokens)

    def syntax_layer(self, cfg, number: int) -> Optional[SyntaxEncoderLayer]:
        """The special layer with a number (from 0), or None for fairseq's own."""
        return None

    def layer_syntax(self, src_syntax: SourceSyntax) -> Optional[dict]:
        """Input of special layers, computed once per batch; None makes them ordinary layers.

        Args:
            src_syntax: a `StrictSyntax`, which raises an error for missing trees.
        """
        return None

    def build_encoder_layer(self, cfg):
        """Build the next layer: fairseq calls this once per layer, without an index."""
        layer = self.syntax_layer(cfg, self._layers_built)
        self._layers_built += 1
        if layer is None:
            return super().build_encoder_layer(cfg)
        if cfg.checkpoint_activations:
            layer = checkpoint_wrapper(layer, offload_to_cpu=cfg.offload_activations)
        return fsdp_wrap(layer, min_num_params=0 if cfg.checkpoint_activations else cfg.min_params_to_wrap)

    def forward(
        self,
        src_tokens,
        src_lengths=None,
        return_all_hiddens: bool = False,
        token_embeddings=None,
        src_syntax: Optional[SourceSyntax] = None,
    ):
        """As in fairseq, with the trees that `syntax_inputs` names; "syntax" lists results of special layers."""
        # as TransformerEncoderBase.forward_scriptable, whose loop passes nothing else to layers
        padding_mask = src_tokens.eq(self.padding_idx)
        x, embedding = self.forward_embedding(src_tokens, token_embeddings)
        x = x * (1 - padding_mask.unsqueeze(-1).type_as(x))
        x = x.transpose(0, 1)  # (B, T, C) -> (T, B, C)
        states = [x] if return_all_hiddens else []
        # on a CPU, leave out a mask without padding; on a GPU, the host would have to wait to know
        mask = padding_mask if padding_mask.is_cuda or padding_mask.any() else None
        syntax = self.layer_syntax(StrictSyntax(src_syntax or {}))
        results = []
        for layer in self.layers:
            # a marker, not an index: --encoder-layerdrop leaves layers out
            if syntax is not None and getattr(layer, "uses_syntax", False):
                x, result = layer(x, encoder_padding_mask=mask, syntax=syntax)
                results.append(result)
            else:
                x = layer(x, encoder_padding_mask=mask)
            if return_all_hiddens:
                states.append(x)
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        lengths = (~padding_mask).sum(dim=1).int().reshape(-1, 1).contiguous()
        return {
            "encoder_out": [x],  # (T, B, C)
            "encoder_padding_mask": [padding_mask],  # (B, T)
            "encoder_embedding": [embedding],  # (B, T, C)
            "encoder_states": states,
            "fc_results": [None] * (len(states) - 1),
            "src_tokens": [],
            "src_lengths": [lengths],
            "syntax": results,
        }
