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
from ..systems.distance_transformers.cross_attention import SyntaxCrossAttention
from ..systems.parser.model import LatentGraphParserModel
from ..systems.sa_nmt.attention import SharedSyntaxAttention
from ..systems.transformer.encoder import SyntaxEncoderLayer
from ..trees.conllu import Sentence
from .latent_trees import CutSentence, TreeInducer
from .models import Loaded, NothingToShow, architectures, encode_line
from .word_attention import source_attention


@dataclass
class Shown:
    """A sentence to be shown to a model.

    Attributes:
        title: title of pictures.
        sentence: its words, with a tree if there is one.
        source: the input to the model.
        batch: fairseq's batch of this sentence and its translation; None for a parser.
    """

    title: str
    sentence: Sentence
    source: CutSentence
    batch: dict | None


def show_split(loaded: Loaded, subset: str, place: int, sentence: Sentence, source: CutSentence) -> Shown:
    """A sentence of a split, with its reference."""
    dataset = loaded.load_split(subset)
    batch = loaded.to_device(dataset.collater([dataset[place]]))
    return Shown(f"{loaded.name}: {subset} {place}", sentence, source, batch)


def show_sentence(loaded: Loaded, sentence: Sentence, source: CutSentence, title: str, **search) -> Shown:
    """A sentence with the model's own translation; for a model that reads trees, it is parsed if it has no tree."""
    title = f"{loaded.name}: {title}"
    if loaded.task.target_dictionary is None:
        return Shown(title, sentence, source, None)
    loaded.check_lengths([(len(source.pieces) + 1, 0)], [source.place])
    reads = getattr(loaded.task, "required_inputs", ())
    ids = loaded.encode([" ".join(source.pieces)], [sentence] if reads and sentence.is_parsed else None)
    lengths = [len(ids[0])]
    [hyp] = loaded.translate(loaded.as_dataset(ids), lengths, **search)
    [batch] = loaded.batches(loaded.as_dataset(ids, [hyp["tokens"].cpu()]), lengths, 10**6)
    return Shown(title, sentence, source, batch)


@torch.no_grad()
def draw(
    loaded: Loaded, shown: Shown, kind: str, decoder: str = "mst", evidence: str = "scores", threshold: float = 0.1
):
    """A matplotlib figure of one of `look.KINDS`. Raises NothingToShow: the model does not support it."""
    if kind == "tree":
        return _tree(TreeInducer(loaded, decoder, evidence), shown)
    if kind == "graph":
        return _graph(TreeInducer(loaded, decoder, evidence), shown, threshold)
    if shown.batch is None:
        raise NothingToShow(f"{loaded.path}: {loaded.architecture} is a parser; draw --kind tree or graph")
    views = {
        "heads": _heads(loaded),
        "annotations": _annotations,
        "translation": _translation,
        "syntax": _syntax,
        "gate": _gate,
        "position": _positions,
    }
    return views[kind](loaded, shown.batch, shown.title)


def _given(shown: Shown) -> tuple[dict, str]:
    """Arguments for drawing the sentence's own tree below the words, and a title that mentions it."""
    if not shown.sentence.is_parsed:
        return {}, shown.title
    below = {"gold": shown.sentence.heads, "gold_labels": shown.sentence.deprels}
    return below, f"{shown.title}  (below: the given tree; dashed: not in it)"


def _tags(sentence: Sentence) -> Sequence[str] | None:
    return sentence.upos if any(tag != "_" for tag in sentence.upos) else None


def _tree(inducer: TreeInducer, shown: Shown):
    """Draw the latent tree."""
    below, title = _given(shown)
    [heads] = inducer([shown.source])
    return draw_tree(shown.sentence.forms, heads, tags=_tags(shown.sentence), title=title, **below)


def _graph(inducer: TreeInducer, shown: Shown, threshold: float):
    """Draw the arcs of the latent graph, with labels if the model is a parser."""
    below, title = _given(shown)
    [graph] = inducer.graphs([shown.source])
    return draw_graph(
        shown.sentence.forms,
        graph.probabilities,
        threshold=threshold,
        tags=_tags(shown.sentence),
        labels=own_labels(inducer, shown.source),
        title=title.replace(shown.title, f"{shown.title}, p > {threshold:g}"),
        **below,
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


def _gate(loaded: Loaded, batch: dict, title: str):
    """Draw the norm of the gate for each predicted token, EOS included (Tran & Bisk 2018, eq. 23 and Figure 6)."""
    _check_target(batch)
    extra = loaded.model(**batch["net_input"])[1]
    norms = extra.get("gate_norm") if isinstance(extra, dict) else None
    if norms is None:
        raise NothingToShow(
            f"{loaded.path}: the architecture {loaded.architecture} has no gate on syntax; "
            f"those that have are {architectures('gated_architectures')}"
        )
    dictionary = loaded.task.target_dictionary
    real = batch["target"][0] != dictionary.pad()
    values = norms[0][real].float().cpu().numpy()
    check_finite(values, f"{loaded.path}: the norms of the gate")
    tokens = ["</s>" if i == dictionary.eos() else dictionary[i] for i in batch["target"][0][real].tolist()]
    source = batch["net_input"]["src_tokens"][0]
    source = utils.strip_pad(source, loaded.task.source_dictionary.pad()).tolist()[:-1]
    return draw_gates([GatedSentence(tokens, values, [loaded.task.source_dictionary[i] for i in source])], title)


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


def _no_heads(loaded: Loaded, batch: dict, title: str):
    raise NothingToShow(
        f"{loaded.path}: the architecture {loaded.architecture} has no syntactic attention heads; give a model of "
        "PASCAL or LISA, or one with latent trees (fa_nmt, sa_nmt, …), or draw --kind translation"
    )


def _encoder_heads(loaded: Loaded, batch: dict, title: str):
    """Draw the attention of the first syntactic layer of PASCAL or LISA."""
    net_input = batch["net_input"]
    syntax = net_input.get("src_syntax")
    layers = loaded.model.encoder(net_input["src_tokens"], src_syntax=syntax)["syntax"]
    parents = None
    if syntax is not None and "parents" in syntax:
        positions = syntax["parents"][0].float() / 2
        parents = positions.masked_fill(positions < 0, float("nan")).cpu().numpy()
    elif syntax is not None and "parent_pieces" in syntax:
        positions = syntax["parent_pieces"][0].float()
        parents = positions.masked_fill(positions < 0, float("nan")).cpu().numpy()
    if "attention" not in layers[0]:  # DASA's heads look at all words
        return _no_heads(loaded, batch, title)
    tokens = _source_tokens(loaded, batch)
    return draw_attention(layers[0]["attention"][0].float().cpu().numpy(), tokens, parents, title)


def _latent_heads(loaded: Loaded, batch: dict, title: str):
    """Draw the probabilities of heads (Figure 4): one row per piece except EOS, one column for ROOT and per head."""
    net_input = batch["net_input"]
    heads = loaded.model.latent_heads(net_input["src_tokens"], net_input["src_lengths"])
    is_word = heads["word_mask"][0].cpu().numpy()
    if not is_word.any():
        raise ValueError("the sentence has no words; give another --sentence")
    arcs, roots = (heads[name][0].float().cpu().numpy() for name in ("arc_marginals", "root_marginals"))
    np.fill_diagonal(arcs, 0)  # in flat attention, a word that chooses itself already counts as a root
    weights = np.concatenate([roots[is_word, None], arcs[np.ix_(is_word, is_word)]], axis=1)
    tokens = [token for token, keep in zip(_source_tokens(loaded, batch), is_word, strict=True) if keep]
    return draw_heat_map(weights, tokens, ["ROOT", *tokens], row_name="dependent", column_name="head", title=title)


def _annotations(loaded: Loaded, batch: dict, title: str):
    """Draw M of models with latent heads."""
    selection = getattr(getattr(loaded.model.encoder, "memory", None), "head_selection", None)
    if selection is None:
        raise NothingToShow(
            f"{loaded.path}: the architecture {loaded.architecture} has no syntactic annotations; give fa_nmt, sa_nmt "
            "or one of their kin"
        )
    source = loaded.model.encoder.source(batch["net_input"]["src_tokens"])
    states, _ = loaded.model.encoder.annotate(source)
    return draw_annotations(selection(states, source)[0].float().cpu().numpy(), _source_tokens(loaded, batch), title)


def _translation(loaded: Loaded, batch: dict, title: str):
    """Draw the attention of target tokens to the source."""
    return _of_target(loaded, batch, source_attention(loaded, batch)["attn"], "attends to", title)


def _syntax(loaded: Loaded, batch: dict, title: str):
    """Draw the attention of target tokens to syntax."""
    extra = source_attention(loaded, batch)
    if isinstance(getattr(loaded.model.decoder, "attention", None), SharedSyntaxAttention):
        extra.setdefault("syntax_attn", extra["attn"])
    if "syntax_attn" not in extra:
        raise NothingToShow(
            f"{loaded.path}: the architecture {loaded.architecture} has no separate attention to syntax; "
            "give --kind translation"
        )
    return _of_target(loaded, batch, extra["syntax_attn"], "attends to the syntax of", title)


def _of_target(loaded: Loaded, batch: dict, weights: torch.Tensor, column_name: str, title: str):
    return draw_heat_map(
        weights[0].float().cpu().numpy(),
        _target_tokens(loaded, batch),
        _source_tokens(loaded, batch),
        row_name="predicted",
        column_name=column_name,
        title=title,
    )


def _positions(loaded: Loaded, batch: dict, title: str):
    """Draw predicted positions, and the attention around them."""
    directed = [m for m in loaded.model.modules() if isinstance(m, SyntaxCrossAttention) and m.syntax_heads]
    if directed:
        weights, positions = _directed_heads(loaded, batch, directed[-1])
    else:
        extra = source_attention(loaded, batch)
        if "position" not in extra:
            raise NothingToShow(
                f"{loaded.path}: the architecture {loaded.architecture} predicts no positions; give sdatt, local_att "
                "or one of their kin"
            )
        weights, positions = extra.get("syntax_attn", extra["attn"]), extra["position"]
    arrays = (tensor.float().cpu().numpy() for tensor in (weights, positions))
    return draw_positions(*arrays, _target_tokens(loaded, batch), _source_tokens(loaded, batch), title)


def _directed_heads(loaded: Loaded, batch: dict, attention: SyntaxCrossAttention):
    """Weights (h, S, T) and positions (h, S) of the syntax-directed heads in a Transformer layer."""
    _check_target(batch)
    recorded = {}
    weigh = attention.weigh

    def keep(scores, position, centres):
        recorded["weights"], recorded["positions"] = weigh(scores, position, centres), position
        return recorded["weights"]

    attention.weigh = keep
    loaded.model(**batch["net_input"])
    del attention.weigh
    return recorded["weights"][0], recorded["positions"][0]


def _target_tokens(loaded: Loaded, batch: dict) -> list[str]:
    return [loaded.task.target_dictionary[i] for i in batch["target"][0].tolist()]


def _source_tokens(loaded: Loaded, batch: dict) -> list[str]:
    return [loaded.task.source_dictionary[i] for i in batch["net_input"]["src_tokens"][0].tolist()]
