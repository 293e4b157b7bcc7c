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

from ...data.collating import SourceSyntax, StrictSyntax
from ...options import option
from ..transformer.encoder import SyntaxEncoder
from ..transformer.model import SyntaxTransformerModel, register_sizes


class TagInputs(StrEnum):
    """Which tags are embedded."""

    deprel = "deprel"
    upos = "upos"
    both = "both"


_INPUTS = {TagInputs.deprel: ("deprels",), TagInputs.upos: ("upos",), TagInputs.both: ("deprels", "upos")}


@dataclass
class TagOptions(FairseqDataclass):
    """Options of tag embeddings."""

    tag_embed_dim: int = option(10, "width of each tag embedding, taken from that of the token embedding")
    tag_inputs: TagInputs = option(TagInputs.deprel, "tags: dependency labels, UPOS, or both")


class TaggedEmbedding(nn.Module):
    """Token embeddings, cut to the width that is left, and tag embeddings, concatenated.

    Tag embeddings start from N(0, 1/d_tag), as in the authors' code.

    Args:
        tokens: embedding of width D - k·d_tag; or of width D, shared with the decoder, which is cut.
        tag_sizes: dictionary sizes of the k kinds of tags.
        tag_dim: d_tag.
        width: D.
    """

    def __init__(self, tokens: nn.Embedding, tag_sizes: dict[str, int], tag_dim: int, width: int):
        super().__init__()
        self.tokens = tokens
        self.tags = nn.ModuleDict(
            {name: nn.Embedding(size, tag_dim, padding_idx=tokens.padding_idx) for name, size in tag_sizes.items()}
        )
        self.padding_idx = tokens.padding_idx
        self.embedding_dim = width
        self.token_dim = width - tag_dim * len(tag_sizes)
        for embedding in self.tags.values():
            nn.init.normal_(embedding.weight, mean=0, std=tag_dim**-0.5)
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
            # fairseq scales embeddings by √D; the authors' code does not scale tags
            token_embeddings = self.embed_tokens(src_tokens, StrictSyntax(src_syntax or {}), 1 / self.embed_scale)
        return super().forward(src_tokens, src_lengths, return_all_hiddens, token_embeddings)


@register_model("tag_transformer")
class TagTransformerModel(SyntaxTransformerModel):
    """Transformer whose source embedding is part token, part dependency label (and/or UPOS)."""

    options = TagOptions

    @property
    def syntax_inputs(self):
        """Kinds of tags that are embedded."""
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
        return TagEncoder(cfg, src_dict, TaggedEmbedding(embed_tokens, cfg.tag_sizes, dim, width))


register_sizes("tag_transformer")
