"""SA-NMT: translation that induces dependency trees of the source (Tran & Bisk 2018), and its flat twin FA-NMT."""

import html
import unicodedata
from dataclasses import dataclass
from enum import StrEnum

import torch
from fairseq.models import register_model

from ...options import option, register_presets
from ..recurrent.model import TINY, RecurrentModel, RecurrentOptions
from ..recurrent.source_attention import GlobalAttention
from .attention import (
    OneSetMemory,
    SeparateSyntaxAttention,
    SeparateSyntaxMemory,
    SharedSyntaxAttention,
    SharedSyntaxMemory,
)
from .head_selection import HeadDistribution, HeadSelection, RootScores


class SyntaxContext(StrEnum):
    """Kinds of attention to the syntactic annotations."""

    shared = "shared"  # by the weights of the content attention, eq. 16
    separate = "separate"  # by weights of its own, eqs. 19-20
    one_set = "one-set"  # they are added to the content annotations, eq. 22


@dataclass
class SyntaxAttentionOptions(RecurrentOptions):
    """Options of SA-NMT and FA-NMT; the presets choose the first three."""

    sa_head_selection: HeadDistribution = option(
        HeadDistribution.tree, "heads of a source word: marginals of dependency trees, or a flat softmax over the words"
    )
    sa_context: SyntaxContext = option(
        SyntaxContext.separate,
        "attention to syntax: weights shared with content, separate ones, or one set of annotations",
    )
    sa_hard_heads: bool = option(False, "use the most probable head only, with the straight-through gradient")
    sa_root_scores: RootScores = option(
        RootScores.diagonal,
        "what scores a word as the root: the diagonal of the arc scores, or a learned query (authors' code)",
        reading=True,
    )
    sa_scaled_heads: bool = option(
        False, "divide head scores by the square root of their size, as the authors' code does", reading=True
    )
    sa_punctuation_never_heads: bool = option(
        False, "a punctuation mark is neither head nor root (unless there is nothing else)", reading=True
    )


# name of the architecture -> its system
SYSTEMS = {
    "fa_nmt": {"sa_head_selection": "flat", "sa_context": "separate"},
    "fa_nmt_shared": {"sa_head_selection": "flat", "sa_context": "shared"},
    "sa_nmt": {"sa_head_selection": "tree", "sa_context": "separate"},
    "sa_nmt_shared": {"sa_head_selection": "tree", "sa_context": "shared"},
    "sa_nmt_hard": {"sa_head_selection": "tree", "sa_context": "shared", "sa_hard_heads": True},
    "sa_nmt_1set": {"sa_head_selection": "tree", "sa_context": "one-set"},
}


@register_model("sa_nmt")
class SyntaxAttentionModel(RecurrentModel):
    """The recurrent base with a head selection layer over the source; needs no parser."""

    options = SyntaxAttentionOptions
    has_latent_trees = True
    clamped_by = ("piece_heads",)

    @classmethod
    def build_attention(cls, args, task):
        source, query = 2 * args.encoder_hidden_size, args.decoder_hidden_size
        selection = HeadSelection(
            source,
            args.sa_head_selection,
            args.sa_root_scores,
            args.sa_hard_heads,
            # checkpoints from before scaling was an option say when they do not scale
            args.sa_scaled_heads or not getattr(args, "sa_unscaled_heads", True),
            punctuation(task.source_dictionary) if args.sa_punctuation_never_heads else None,
        )
        if args.sa_context == SyntaxContext.shared:
            return SharedSyntaxMemory(source, query, selection), SharedSyntaxAttention(source, query)
        if args.sa_context == SyntaxContext.separate:
            return SeparateSyntaxMemory(source, query, selection), SeparateSyntaxAttention(source, query)
        return OneSetMemory(source, query, selection), GlobalAttention()

    @torch.no_grad()
    def latent_heads(self, src_tokens, src_lengths=None):
        """Scores and marginals of the heads of the source tokens (B, T), see `HeadSelection.heads`."""
        source = self.encoder.source(src_tokens)
        return self.encoder.memory.head_selection.heads(self.encoder.annotate(source)[0], source)

    def annotations(self, src_tokens):
        """The syntactic annotations M (B, T, C) of the source tokens (eq. 12)."""
        source = self.encoder.source(src_tokens)
        return self.encoder.memory.head_selection(self.encoder.annotate(source)[0], source)


def punctuation(dictionary) -> torch.Tensor:
    """(V,) True at symbols that consist of punctuation only, marks of subwords aside.

    Escaped marks, as the Moses tokenizer writes them (&quot;), count as their characters.
    """
    texts = (html.unescape(symbol.removesuffix("@@").removeprefix("\u2581")) for symbol in dictionary.symbols)
    marks = [bool(text) and all(unicodedata.category(letter).startswith("P") for letter in text) for text in texts]
    return torch.tensor(marks, dtype=torch.bool)


register_presets("sa_nmt", SYSTEMS)
register_presets("sa_nmt", {f"{name}_tiny": {**settings, **TINY} for name, settings in SYSTEMS.items()})
