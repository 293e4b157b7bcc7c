"""Pictures of a model's view of one sentence, with one function per kind in `look.KINDS`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from fairseq import utils

from ..pictures.attention_maps import draw_annotations, draw_attention, draw_heat_map, draw_positions
from ..pictures.dependency_trees import draw_tree
from ..pictures.figures import check_finite
from ..pictures.gates import GatedSentence, draw_gates
from ..pictures.graphs import draw_graph
from ..systems.parser.model import LatentGraphParserModel
from ..systems.sa_nmt.attention import SharedSyntaxAttention
from ..systems.transformer.encoder import SyntaxEncoderLayer
from ..trees.conllu import ROOT, Sentence
from .latent_trees import CutSentence, TreeInducer
from .models import Loaded, NothingToShow, architectures, encode_line, words_of
from .word_attention import join_attention, source_attention


@dataclass
class Shown:
    """A sentence to be shown to a model.

    Attributes:
        sentence: its words, with a tree if there is one.
        source: the input to the model.
        batch: fairseq's batch of this sentence and its translation; None for a parser.
        subword_type: segmentation of the translation; None for that of the model's data.
    """

    sentence: Sentence
    source: CutSentence
    batch: dict | None
    subword_type: str | None = None


def show_split(
    loaded: Loaded, subset: str, place: int, sentence: Sentence, source: CutSentence, subword_type: str | None = None
) -> Shown:
    """A sentence of a split, with its reference."""
    dataset = loaded.load_split(subset)
    batch = loaded.to_device(dataset.collater([dataset[place]]))
    return Shown(sentence, source, batch, subword_type)


def show_sentence(
    loaded: Loaded, sentence: Sentence, source: CutSentence, subword_type: str | None = None, **search
) -> Shown:
    """A sentence with the model's own translation; for a model that reads trees, it is parsed if it has no tree."""
    if loaded.task.target_dictionary is None:
        return Shown(sentence, source, None)
    loaded.check_lengths([(len(source.pieces) + 1, 0)], [source.place])
    reads = getattr(loaded.task, "required_inputs", ())
    ids = loaded.encode([" ".join(source.pieces)], [sentence] if reads and sentence.is_parsed else None)
    lengths = [len(ids[0])]
    [hyp] = loaded.translate(loaded.as_dataset(ids), lengths, **search)
    [batch] = loaded.batches(loaded.as_dataset(ids, [hyp["tokens"].cpu()]), lengths, 10**6)
    return Shown(sentence, source, batch, subword_type)


@torch.no_grad()
def draw(
    loaded: Loaded,
    shown: Shown,
    kind: str,
    decoder: str = "mst",
    evidence: str = "scores",
    threshold: float = 0.1,
    pieces: bool = False,
):
    """A matplotlib figure of one of `look.KINDS`.

    Heads, translation and syntax are attention between words (see `word_attention.join_attention`), with `pieces` that
    between pieces; other kinds are of tokens. Raises NothingToShow: the model does not support it; ValueError: the
    sentence is too long for a heat map.
    """
    if kind == "tree":
        return _tree(TreeInducer(loaded, decoder, evidence), shown)
    if kind == "graph":
        return _graph(TreeInducer(loaded, decoder, evidence), shown, threshold)
    if shown.batch is None:
        raise NothingToShow(f"{loaded.path}: {loaded.architecture} is a parser; draw --kind tree or graph")
    if kind in _OF_TOKENS:
        return _OF_TOKENS[kind](loaded, shown.batch)
    return {"heads": _heads(loaded), "translation": _translation, "syntax": _syntax}[kind](loaded, shown, pieces)


def _given(shown: Shown) -> dict:
    """Arguments for drawing the sentence's own tree below the words."""
    return {"gold": shown.sentence.heads, "gold_labels": shown.sentence.deprels} if shown.sentence.is_parsed else {}


def _tags(sentence: Sentence) -> Sequence[str] | None:
    return sentence.upos if any(tag != "_" for tag in sentence.upos) else None


def _tree(inducer: TreeInducer, shown: Shown):
    """Draw the latent tree."""
    [heads] = inducer([shown.source])
    return draw_tree(shown.sentence.forms, heads, tags=_tags(shown.sentence), **_given(shown))


def _graph(inducer: TreeInducer, shown: Shown, threshold: float):
    """Draw the arcs of the latent graph, with labels if the model is a parser."""
    [graph] = inducer.graphs([shown.source])
    return draw_graph(
        shown.sentence.forms,
        graph.probabilities,
        threshold=threshold,
        tags=_tags(shown.sentence),
        labels=own_labels(inducer, shown.source),
        **_given(shown),
    )


@torch.no_grad()
def own_labels(inducer: TreeInducer, source: CutSentence) -> list[str] | None:
    """The most probable label of each word, summed over its pieces; None for a model without names of labels.

    The inducer must have read the source before.
    """
    model = inducer.loaded.model
    if not isinstance(model, LatentGraphParserModel):
        return None
    tokens = encode_line(inducer.loaded.task.source_dictionary, source.pieces)[None].to(inducer.loaded.device)
    graph = model(tokens, torch.tensor([tokens.shape[1]], device=tokens.device))
    starts = np.flatnonzero(np.diff(source.word_of_token, prepend=-1))
    of_words = np.add.reduceat(graph.labels[0, :-1].double().cpu().numpy(), starts, axis=0)
    return [model.labels[number] for number in of_words.argmax(axis=1)]


def _gate(loaded: Loaded, batch: dict):
    """Draw the norm of the gate for each predicted token, EOS included (Tran & Bisk 2018, eq. 23 and Figure 6)."""
    _check_target(batch)
    extra = loaded.model(**batch["net_input"])[1]
    norms = extra.get("gate_norm") if isinstance(extra, dict) else None
    if norms is None:
        raise NothingToShow(
            f"{loaded.path}: the architecture {loaded.architecture} has no gate on syntax; "
            f"give one of {architectures('gated_architectures')}"
        )
    dictionary = loaded.task.target_dictionary
    real = batch["target"][0] != dictionary.pad()
    values = norms[0][real].float().cpu().numpy()
    check_finite(values, f"{loaded.path}: the norms of the gate")
    tokens = ["</s>" if i == dictionary.eos() else dictionary[i] for i in batch["target"][0][real].tolist()]
    source = batch["net_input"]["src_tokens"][0]
    source = utils.strip_pad(source, loaded.task.source_dictionary.pad()).tolist()[:-1]
    return draw_gates([GatedSentence(tokens, values, [loaded.task.source_dictionary[i] for i in source])])


def _check_target(batch: dict) -> None:
    if batch.get("target") is None:
        raise ValueError("the split has no target side; preprocess it with both languages")


def _heads(loaded: Loaded):
    """The function that draws the syntactic heads of a model."""
    if any(isinstance(module, SyntaxEncoderLayer) for module in loaded.model.modules()):
        return _encoder_heads
    if getattr(loaded.model, "latent_heads", None) is not None and getattr(loaded.model, "has_latent_trees", True):
        return _latent_heads
    return _no_heads


def _no_heads(loaded: Loaded, shown: Shown, pieces: bool):
    raise NothingToShow(
        f"{loaded.path}: the architecture {loaded.architecture} has no syntactic attention heads; give a model of "
        "PASCAL or LISA, or one with latent trees (fa_nmt, sa_nmt, …), or draw --kind translation"
    )


def _encoder_heads(loaded: Loaded, shown: Shown, pieces: bool):
    """Draw the attention of the first syntactic layer of PASCAL or LISA, or that of planted heads."""
    source = shown.batch["net_input"]["src_tokens"]
    syntax = shown.batch["net_input"].get("src_syntax")
    # planted heads are heads like all others, unless a criterion compares them with parents
    [layer, *_] = (
        loaded.model.encoder(source, src_syntax=syntax)["syntax"]
        or (loaded.model.encoder(source, src_syntax={"parent_pieces": torch.full_like(source, -1)})["syntax"])
    )
    heads = layer["planted_logits"].softmax(dim=-1) if "planted_logits" in layer else layer.get("attention")
    if heads is None:  # DASA's heads look at all words
        return _no_heads(loaded, shown, pieces)
    heads = heads[0].float().cpu()
    names, of_token = _source(loaded, shown, pieces)
    parents = _parents(shown, syntax, None if pieces else of_token)
    number = next(i for i, layer in enumerate(loaded.model.encoder.layers, 1) if isinstance(layer, SyntaxEncoderLayer))
    weights = join_attention(heads, *(of_token.expand(len(heads), -1),) * 2).numpy()
    return draw_attention(weights, names, parents, number)


def _parents(shown: Shown, syntax: dict | None, of_token: torch.Tensor | None) -> np.ndarray | None:
    """The parents of a sentence's words, or with `of_token` None the middles of those of its tokens; NaN for no parent.

    Roots and EOS are their own parents. None if no tree is known.
    """
    if of_token is not None and shown.sentence.is_parsed:
        heads = [word if head == ROOT else head for word, head in enumerate(shown.sentence.heads)]
        return np.array([*heads, len(heads)], dtype=float)
    if syntax is not None and "parents" in syntax:
        positions = syntax["parents"][0].cpu().double() / 2
    elif syntax is not None and "parent_pieces" in syntax:
        positions = syntax["parent_pieces"][0].cpu().double()
    else:
        return None
    known = positions >= 0
    if of_token is not None:
        # of the first piece of each word
        positions = of_token[positions.clamp(min=0).long()].double()
        first = of_token.diff(prepend=of_token.new_full((1,), -1)) > 0
        positions, known = positions[first], known[first]
    return positions.masked_fill(~known, torch.nan).numpy()


def _latent_heads(loaded: Loaded, shown: Shown, pieces: bool):
    """Draw the probabilities of heads (Figure 4): one row per word, one column for ROOT and per head."""
    net_input = shown.batch["net_input"]
    heads = loaded.model.latent_heads(net_input["src_tokens"], net_input["src_lengths"])
    is_word = heads["word_mask"][0].cpu()
    if not is_word.any():
        raise ValueError("the sentence has no words; give another --sentence")
    arcs, roots = (heads[name][0].float().cpu() for name in ("arc_marginals", "root_marginals"))
    arcs.fill_diagonal_(0)  # in flat attention, a word that chooses itself already counts as a root
    weights = torch.cat((roots[is_word, None], arcs[is_word][:, is_word]), dim=1)
    names, of_token = _source(loaded, shown, pieces)
    of_token, names = of_token[is_word], names[: int(of_token[is_word].max()) + 1]
    columns = torch.cat((of_token.new_zeros(1), of_token + 1))
    weights = join_attention(weights[None], columns[None], of_token[None])[0].numpy()
    if not pieces:
        # arcs between the pieces of a word count as ROOT, as in its graph
        words = np.arange(len(weights))
        weights[:, 0] += weights[words, words + 1]
        weights[words, words + 1] = 0
    parents = None if pieces or not shown.sentence.is_parsed else np.array(shown.sentence.heads, dtype=float) + 1
    return draw_heat_map(
        weights, names, ["ROOT", *names], row_name="dependent", column_name="head", parents=parents, value="probability"
    )


def _annotations(loaded: Loaded, batch: dict):
    """Draw M of models with latent heads."""
    selection = getattr(getattr(loaded.model.encoder, "memory", None), "head_selection", None)
    if selection is None:
        raise NothingToShow(
            f"{loaded.path}: the architecture {loaded.architecture} has no syntactic annotations; give fa_nmt, sa_nmt "
            "or one of their variants"
        )
    source = loaded.model.encoder.source(batch["net_input"]["src_tokens"])
    states, _ = loaded.model.encoder.annotate(source)
    return draw_annotations(selection(states, source)[0].float().cpu().numpy(), _source_tokens(loaded, batch))


def _translation(loaded: Loaded, shown: Shown, pieces: bool):
    """Draw the attention of target words to the source."""
    return _of_target(loaded, shown, source_attention(loaded, shown.batch)["attn"], "attends to", pieces)


def _syntax(loaded: Loaded, shown: Shown, pieces: bool):
    """Draw the attention of target words to syntax."""
    extra = source_attention(loaded, shown.batch)
    if isinstance(getattr(loaded.model.decoder, "attention", None), SharedSyntaxAttention):
        extra.setdefault("syntax_attn", extra["attn"])
    if "syntax_attn" not in extra:
        raise NothingToShow(
            f"{loaded.path}: the architecture {loaded.architecture} has no separate attention to syntax; "
            "give --kind translation"
        )
    return _of_target(loaded, shown, extra["syntax_attn"], "attends to the syntax of", pieces)


def _of_target(loaded: Loaded, shown: Shown, weights: torch.Tensor, column_name: str, pieces: bool):
    (columns, of_source), (rows, of_target) = _source(loaded, shown, pieces), _target(loaded, shown, pieces)
    weights = join_attention(weights[:1].float().cpu(), of_source[None], of_target[None])[0].numpy()
    return draw_heat_map(weights, rows, columns, row_name="predicted", column_name=column_name)


def _source(loaded: Loaded, shown: Shown, pieces: bool) -> tuple[list[str], torch.Tensor]:
    """The names of the words (or pieces) of the source, EOS last, and the word of each token."""
    tokens = _source_tokens(loaded, shown.batch)
    if pieces:
        return tokens, torch.arange(len(tokens))
    forms = list(shown.sentence.forms)
    return [*forms, tokens[-1]], torch.tensor([*shown.source.word_of_token, len(forms)])


def _target(loaded: Loaded, shown: Shown, pieces: bool) -> tuple[list[str], torch.Tensor]:
    """Likewise of the translation."""
    tokens = _target_tokens(loaded, shown.batch)
    if pieces:
        return tokens, torch.arange(len(tokens))
    try:
        words, numbers = words_of(tokens[:-1], loaded.subword_type(shown.subword_type, target=True))
    except ValueError:  # a piece of several words
        return _target(loaded, shown, pieces=True)
    return [*words, tokens[-1]], torch.tensor([*numbers, len(words)])


def _positions(loaded: Loaded, batch: dict):
    """Draw predicted positions, and the attention around them."""
    extra = source_attention(loaded, batch)
    if "position" not in extra:
        raise NothingToShow(
            f"{loaded.path}: the architecture {loaded.architecture} predicts no positions; give sdatt, local_att "
            "or one of their variants"
        )
    weights, positions = extra.get("syntax_attn", extra["attn"]), extra["position"]
    arrays = (tensor.float().cpu().numpy() for tensor in (weights, positions))
    return draw_positions(*arrays, _target_tokens(loaded, batch), _source_tokens(loaded, batch))


def _target_tokens(loaded: Loaded, batch: dict) -> list[str]:
    return [loaded.task.target_dictionary[i] for i in batch["target"][0].tolist()]


def _source_tokens(loaded: Loaded, batch: dict) -> list[str]:
    return [loaded.task.source_dictionary[i] for i in batch["net_input"]["src_tokens"][0].tolist()]


_OF_TOKENS = {"annotations": _annotations, "gate": _gate, "position": _positions}
