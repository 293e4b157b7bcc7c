"""Linguistic input features (Sennrich & Haddow 2016) for the Transformer: "S&H" of Bugliarello & Okazaki (2020).

Sennrich & Haddow concatenate a word embedding of width D - k·d with k tag embeddings of width d. With one table for
source, target and output, whose rows are D wide, the encoder takes the first D - k·d coordinates of a row; the
others belong to the target side alone.
"""

from dataclasses import dataclass
from enum import StrEnum

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.models import register_model
from torch import nn

from ...data.collating import GivenSyntax, SourceSyntax
from ...options import option
from ..transformer.encoder import SyntaxEncoder
from ..transformer.model import SyntaxTransformerModel, register_sizes

TagInputs = StrEnum("TagInputs", "deprel upos both")
"""Which tags are embedded."""
TagScale = StrEnum("TagScale", "none token")
"""How large tag embeddings are; fairseq initializes token embeddings with N(0, 1/D) and scales them by √D."""


_INPUTS = {TagInputs.deprel: ("deprels",), TagInputs.upos: ("upos",), TagInputs.both: ("deprels", "upos")}


@dataclass
class TagOptions(FairseqDataclass):
    """Options of tag embeddings."""

    tag_embed_dim: int = option(10, "width of each tag embedding, taken from that of the token embedding")
    tag_inputs: TagInputs = option(TagInputs.deprel, "tags: dependency labels, UPOS, or both")
    tag_embed_scale: TagScale = option(
        TagScale.token,
        "none: tag embeddings start from N(0, 1/--tag-embed-dim) and are not scaled, as in the authors' "
        "code; token: they are initialized and scaled by √D as token embeddings are. Every --arch sets none; "
        "checkpoints that do not say were trained with token",
        reading=True,
    )


class TaggedEmbedding(nn.Module):
    """Token embedding, or as much of it as there is room for, and tag embeddings, side by side.

    Args:
        tokens: embedding of width D - k·d_tag; or of width D, shared with the decoder, which is cut.
        tag_sizes: dictionary sizes of the k kinds of tags.
        tag_dim: d_tag.
        width: D.
        std: standard deviation of the initial tag embeddings.
    """

    def __init__(self, tokens: nn.Embedding, tag_sizes: dict[str, int], tag_dim: int, width: int, std: float):
        super().__init__()
        self.tokens = tokens
        self.tags = nn.ModuleDict(
            {name: nn.Embedding(size, tag_dim, padding_idx=tokens.padding_idx) for name, size in tag_sizes.items()}
        )
        self.padding_idx = tokens.padding_idx
        self.embedding_dim = width
        self.token_dim = width - tag_dim * len(tag_sizes)
        for embedding in self.tags.values():
            nn.init.normal_(embedding.weight, mean=0, std=std)
            nn.init.zeros_(embedding.weight[self.padding_idx])

    def forward(self, src_tokens, src_syntax: SourceSyntax, tag_factor: float):
        """Args: src_tokens (B, T); src_syntax with tags; tag_factor scales tags. Returns (B, T, D)."""
        tags = [tag_factor * embedding(src_syntax[name]) for name, embedding in self.tags.items()]
        return torch.cat([self.tokens(src_tokens)[..., : self.token_dim], *tags], dim=-1)


class TagEncoder(SyntaxEncoder):
    """fairseq's encoder over tagged embeddings."""

    def forward(
        self,
        src_tokens,
        src_lengths=None,
        return_all_hiddens=False,
        token_embeddings=None,
        src_syntax: SourceSyntax | None = None,
    ):
        """As in fairseq; `src_syntax` holds the tags of the tokens."""
        if token_embeddings is None:
            # fairseq scales the whole of it
            factor = 1 / self.embed_scale if self.cfg.tag_embed_scale == TagScale.none else 1.0
            token_embeddings = self.embed_tokens(src_tokens, GivenSyntax(src_syntax or {}), factor)
        return super().forward(src_tokens, src_lengths, return_all_hiddens, token_embeddings)


@register_model("tag_transformer")
class TagTransformerModel(SyntaxTransformerModel):
    """Transformer whose source embedding is part token, part dependency label (and/or UPOS)."""

    options = TagOptions

    @property
    def syntax_inputs(self):
        """The kinds of tags that are embedded."""
        return tuple(self.encoder.embed_tokens.tags)

    @classmethod
    def check_options(cls, args, task):
        names = _INPUTS[TagInputs(args.tag_inputs)]
        if args.encoder_embed_path and not args.share_all_embeddings:
            raise ValueError("tag_transformer: --encoder-embed-path needs --share-all-embeddings")
        if not 0 < args.tag_embed_dim * len(names) < args.encoder_embed_dim:
            raise ValueError(
                f"--tag-embed-dim {args.tag_embed_dim}: {len(names)} tag embeddings must leave room for tokens in "
                f"--encoder-embed-dim {args.encoder_embed_dim}"
            )
        args.tag_sizes = {name: len(task.syntax_dictionary(name)) for name in names}

    @classmethod
    def build_encoder(cls, cfg, src_dict, embed_tokens):
        width, dim = cfg.encoder.embed_dim, cfg.tag_embed_dim
        if not (cfg.share_all_embeddings or cfg.merge_src_tgt_embed):
            embed_tokens = cls.build_embedding(cfg, src_dict, width - dim * len(cfg.tag_sizes))
        std = (dim if cfg.tag_embed_scale == TagScale.none else width) ** -0.5
        return TagEncoder(cfg, src_dict, TaggedEmbedding(embed_tokens, cfg.tag_sizes, dim, width, std))


def _preset(args, suffix):
    # not the default of the option: checkpoints from before there was one were trained otherwise
    args.tag_embed_scale = getattr(args, "tag_embed_scale", TagScale.none.value)


register_sizes("tag_transformer", _preset)
