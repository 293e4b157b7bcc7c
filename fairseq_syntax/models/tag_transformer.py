"""Linguistic input features (Sennrich & Haddow 2016) for the Transformer: "S&H" of Bugliarello & Okazaki (2020)."""

from dataclasses import dataclass, field
from enum import StrEnum

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.models import register_model
from fairseq.models.transformer import TransformerEncoderBase
from torch import nn

from .syntax_transformer import SyntaxTransformerModel, register_sizes


class TagInputs(StrEnum):
    """Which tags are embedded."""

    deprel = "deprel"
    upos = "upos"
    both = "both"


_INPUTS = {
    TagInputs.deprel: ("deprels",),
    TagInputs.upos: ("upos",),
    TagInputs.both: ("deprels", "upos"),
}


@dataclass
class TagOptions(FairseqDataclass):
    """Options of tag embeddings."""

    tag_embed_dim: int = field(
        default=10, metadata={"help": "width of each tag embedding, cut off the token embedding"}
    )
    tag_inputs: TagInputs = field(default=TagInputs.deprel, metadata={"help": "tags: dependency labels, UPOS, or both"})


class TaggedEmbedding(nn.Module):
    """Token embedding and tag embeddings, side by side.

    Args:
        tokens: embedding of width D - k·d_tag.
        tag_sizes: dictionary sizes of the k kinds of tags.
        tag_dim: d_tag.
        padding_idx: of tags.
    """

    def __init__(self, tokens: nn.Embedding, tag_sizes: dict[str, int], tag_dim: int):
        super().__init__()
        self.tokens = tokens
        self.tags = nn.ModuleDict(
            {name: nn.Embedding(size, tag_dim, padding_idx=tokens.padding_idx) for name, size in tag_sizes.items()}
        )
        self.padding_idx = tokens.padding_idx
        self.embedding_dim = tokens.embedding_dim + tag_dim * len(tag_sizes)
        for embedding in self.tags.values():
            # of the same size as a coordinate of fairseq's token embedding
            nn.init.normal_(embedding.weight, mean=0, std=self.embedding_dim**-0.5)
            nn.init.zeros_(embedding.weight[self.padding_idx])

    def forward(self, src_tokens, src_syntax):
        """Args: src_tokens (B, T); src_syntax name -> tags (B, T). Returns (B, T, D)."""
        tags = [embedding(src_syntax[name]) for name, embedding in self.tags.items()]
        return torch.cat([self.tokens(src_tokens), *tags], dim=-1)


class TagEncoder(TransformerEncoderBase):
    """fairseq's encoder over tagged embeddings."""

    def forward(
        self,
        src_tokens,
        src_lengths=None,
        return_all_hiddens=False,
        token_embeddings=None,
        src_syntax=None,
    ):
        """As in fairseq; `src_syntax` holds the tags of the tokens."""
        if src_syntax is None or any(name not in src_syntax for name in self.embed_tokens.tags):
            raise ValueError(
                f"tag_transformer needs {', '.join(self.embed_tokens.tags)} of the source tokens; "
                "use --task syntax_translation and data of fairseq-syntax-preprocess"
            )
        if token_embeddings is None:
            token_embeddings = self.embed_tokens(src_tokens, src_syntax)
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
        if args.share_all_embeddings or getattr(args, "merge_src_tgt_embed", False):
            raise ValueError(
                "tag_transformer: source embeddings are narrower than target embeddings and cannot be shared; "
                "use --share-decoder-input-output-embed instead of --share-all-embeddings"
            )
        if args.encoder_embed_path:
            raise ValueError("tag_transformer: --encoder-embed-path is not supported")
        if not 0 < args.tag_embed_dim * len(names) < args.encoder_embed_dim:
            raise ValueError(
                f"--tag-embed-dim {args.tag_embed_dim}: {len(names)} tag embeddings must leave room for tokens in "
                f"--encoder-embed-dim {args.encoder_embed_dim}"
            )
        args.tag_sizes = {name: len(task.syntax_dictionary(name)) for name in names}

    @classmethod
    def build_encoder(cls, cfg, src_dict, embed_tokens):
        width = cfg.encoder.embed_dim - cfg.tag_embed_dim * len(cfg.tag_sizes)
        tokens = cls.build_embedding(cfg, src_dict, width)
        return TagEncoder(cfg, src_dict, TaggedEmbedding(tokens, cfg.tag_sizes, cfg.tag_embed_dim))


register_sizes("tag_transformer", lambda args, suffix: None)
