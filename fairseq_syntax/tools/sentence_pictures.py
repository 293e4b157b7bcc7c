"""Pictures of a sentence in a model, with one function per kind in `look.KINDS`.

The kinds that a model supports depend on its methods (`latent_heads`, `syntactic_heads`, `annotations`) and on the
extra output of its decoder ("attn", "syntax_attn", "gate_norm", "position").
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ..evaluate.tables import format_table
from ..pictures.attention_maps import draw_annotations, draw_attention, draw_heat_map, draw_positions
from ..pictures.dependency_trees import draw_tree
from ..pictures.figures import check_finite
from ..pictures.gates import GatedSentence, draw_gates
from ..pictures.graphs import draw_graph
from ..trees.conllu import ROOT, UNPARSED, Sentence, TreeFormatError, quoted, read_conllu
from .latent_trees import CutSentence, TreeInducer
from .loaded_model import LoadedModel, NothingToShow, encode_line, join_words
from .word_attention import join_attention, source_attention


@dataclass
class Shown:
    """A sentence for pictures, with its translation.

    Attributes:
        sentence: words, with a tree if there is one.
        source: pieces that the model reads.
        batch: fairseq's batch of this sentence and its translation; None for a parser.
        subword_type: segmentation of the translation; None for that of the model's data.
    """

    sentence: Sentence
    source: CutSentence
    batch: dict | None
    subword_type: str | None = None


def show_sentence(
    loaded: LoadedModel, sentence: Sentence, source: CutSentence, subword_type: str | None = None, **search
) -> Shown:
    """Translate a sentence for pictures; it is parsed first if it has no tree and the model reads trees."""
    if loaded.task.target_dictionary is None:
        return Shown(sentence, source, None)
    loaded.check_lengths([(len(source.pieces) + 1, 0)], [source.place])
    reads = getattr(loaded.task, "required_inputs", ())
    pieces = " ".join(source.pieces)  # of words that the cutter may have lower-cased
    tree = replace(sentence, forms=[form.lower() for form in sentence.forms]) if pieces == pieces.lower() else sentence
    [ids] = loaded.encode([pieces], [tree] if reads and sentence.is_parsed else None)
    heads = ids.syntax.heads.tolist() if reads and not sentence.is_parsed else [UNPARSED]
    if UNPARSED not in heads and len(heads) == len(sentence):  # the parser's words may hold spaces
        sentence = replace(sentence, heads=heads)
    [hyp] = loaded.translate(loaded.as_dataset([ids]), [len(ids)], **search)
    [batch] = loaded.batches(loaded.as_dataset([ids], [hyp["tokens"].cpu()]), [len(ids)], 10**6)
    return Shown(sentence, source, batch, subword_type)


@torch.no_grad()
def draw(
    loaded: LoadedModel, shown: Shown, kind: str, decoder: str = "mst", evidence: str = "scores", threshold: float = 0.1
):
    """A matplotlib figure of one of `look.KINDS`.

    Attention is between words (see `word_attention.join_attention`). Raises NothingToShow: the model does not support
    it; ValueError: the sentence is too long for a heat map.
    """
    if kind == "tree":
        return _tree(TreeInducer(loaded, decoder, evidence), shown)
    if kind == "graph":
        return _graph(TreeInducer(loaded, decoder, evidence), shown, threshold)
    figure = None if shown.batch is None else _VIEWS[kind](loaded, shown)
    if figure is None:
        raise NothingToShow(
            f"{loaded.path}: the architecture {loaded.architecture} has nothing to show for --kind {kind}; give "
            "another, or a folder to --draw for all that the model can show"
        )
    return figure


def _tree_arguments(sentence: Sentence) -> dict:
    """Arguments of `draw_tree` and `draw_graph` for the tags of a sentence, and for its tree, below the words."""
    tags = sentence.upos if any(tag != "_" for tag in sentence.upos) else None
    return {"tags": tags} | ({"gold": sentence.heads, "gold_labels": sentence.deprels} if sentence.is_parsed else {})


def _tree(inducer: TreeInducer, shown: Shown):
    """Draw the latent tree."""
    [heads] = inducer([shown.source])
    return draw_tree(shown.sentence.forms, heads, **_tree_arguments(shown.sentence))


def _graph(inducer: TreeInducer, shown: Shown, threshold: float):
    """Draw the arcs of the latent graph, with labels if the model is a parser."""
    [graph] = inducer.graphs([shown.source])
    labels = own_labels(inducer, shown.source)
    return draw_graph(
        shown.sentence.forms, graph.probabilities, threshold=threshold, labels=labels, **_tree_arguments(shown.sentence)
    )


@torch.no_grad()
def own_labels(inducer: TreeInducer, source: CutSentence) -> list[str] | None:
    """The most probable label of each word, summed over its pieces; None for a model without `labels`.

    Call the inducer on the source before, which makes its words known.
    """
    model = inducer.loaded.model
    if not hasattr(model, "labels"):
        return None
    tokens = encode_line(inducer.loaded.task.source_dictionary, source.pieces)[None].to(inducer.loaded.device)
    graph = model(tokens, torch.tensor([tokens.shape[1]], device=tokens.device))
    starts = np.flatnonzero(np.diff(source.token_words, prepend=-1))
    scores = np.add.reduceat(graph.labels[0, :-1].double().cpu().numpy(), starts, axis=0)
    return [model.labels[number] for number in scores.argmax(axis=1)]


def _gate(loaded: LoadedModel, shown: Shown):
    """Draw the norm of the gate for each predicted token, EOS included (Tran & Bisk 2018, eq. 23 and Figure 6)."""
    norms = source_attention(loaded, shown.batch).get("gate_norm")
    if norms is None:
        return None
    values = norms[0].float().cpu().numpy()
    check_finite(values, f"{loaded.path}: the norms of the gate")
    return draw_gates([GatedSentence(_tokens(loaded, shown, True), values, _tokens(loaded, shown)[:-1])])


@torch.no_grad()
def highest_gates(loaded: LoadedModel, subset: str, tags: str, form: str) -> str:
    """Table of how often each tag has the highest norm of the gate in its sentence (Tran & Bisk 2018, Sec. 5).

    The column with its share of all tokens is for comparison: a gate that ignores tags would give these shares. Pieces
    have the tag of their word, and EOS has its own. Sentences in which unknown pieces hide ends of words are left out.

    Args:
        subset: split; the gates are those of its references.
        tags: CoNLL-U file with the target side of the split.
        form: a `TableFormat`.

    Raises NothingToShow: the model has no gate; TreeFormatError: the trees are not those of the target side.
    """
    split, trees, dictionary = loaded.load_split(subset), list(read_conllu(tags)), loaded.task.target_dictionary
    if len(trees) != len(split):
        raise TreeFormatError(f"{tags}: {len(trees)} sentences, but {subset} has {len(split)}; tag its target side")
    highest, every = Counter(), Counter()
    for start in range(0, len(split), 64):
        batch = loaded.to_device(split.collater([split[i] for i in range(start, min(start + 64, len(split)))]))
        norms = source_attention(loaded, batch).get("gate_norm")
        if norms is None:
            raise NothingToShow(f"{loaded.path}: the architecture {loaded.architecture} has no gate on syntax")
        for number, ids, row in zip(batch["id"].tolist(), batch["target"], norms, strict=True):
            real, tree = ids != dictionary.pad(), trees[number]
            tokens = [dictionary[i] for i in ids[real].tolist()]
            words, token_words = join_words(tokens[:-1], loaded.subword_type(None, target=True))
            if len(words) == len(tree.forms):
                token_tags = [*(tree.upos[word] for word in token_words), tokens[-1]]
                highest[token_tags[int(row[real].argmax())]] += 1
                every.update(token_tags)
            elif dictionary.unk_word not in tokens:
                raise TreeFormatError(
                    f"{tags}:{tree.line}: {len(tree.forms)} words, but sentence {number} of {subset} has {len(words)} "
                    f"({quoted(' '.join(words))}); tag the target side of this split"
                )
    total, tokens = max(highest.total(), 1), max(every.total(), 1)
    rows = [(tag, highest[tag], 100 * highest[tag] / total, 100 * count / tokens) for tag, count in every.items()]
    rows.sort(key=lambda row: (-row[1], -row[3], row[0]))
    return format_table(["tag", "highest", "% of sentences", "% of tokens"], rows, form)


def _heads(loaded: LoadedModel, shown: Shown):
    """Draw the attention of the first layer whose heads learn from trees, or else the probabilities of latent heads."""
    net_input, model = shown.batch["net_input"], loaded.model
    if not hasattr(model, "syntactic_heads"):
        return _latent_heads(loaded, shown) if getattr(model, "has_latent_trees", False) else None
    heads, number = model.syntactic_heads(net_input["src_tokens"], net_input.get("src_syntax"))
    if heads is None:
        return None
    heads, (names, token_words) = heads[0].float().cpu(), _source(loaded, shown)
    weights = join_attention(heads, *(token_words.expand(len(heads), -1),) * 2).numpy()
    parents = None
    if shown.sentence.is_parsed:  # roots and EOS are their own parents
        positions = [word if head == ROOT else head for word, head in enumerate(shown.sentence.heads)]
        parents = np.array([*positions, len(positions)], dtype=float)
    return draw_attention(weights, names, parents, number)


def _latent_heads(loaded: LoadedModel, shown: Shown):
    """Draw the probabilities of heads (Figure 4): one row per word, one column for ROOT and per head."""
    net_input = shown.batch["net_input"]
    heads = loaded.model.latent_heads(net_input["src_tokens"], net_input["src_lengths"])
    is_word = heads["word_mask"][0].cpu()
    if not is_word.any():
        raise ValueError("the sentence has no words; give another --sentence")
    arcs, roots = (heads[name][0].float().cpu() for name in ("arc_marginals", "root_marginals"))
    arcs.fill_diagonal_(0)  # in flat attention, a word that chooses itself already counts as a root
    weights = torch.cat((roots[is_word, None], arcs[is_word][:, is_word]), dim=1)
    names, token_words = _source(loaded, shown)
    token_words, names = token_words[is_word], names[: int(token_words[is_word].max()) + 1]
    columns = torch.cat((token_words.new_zeros(1), token_words + 1))
    weights = join_attention(weights[None], columns[None], token_words[None])[0].numpy()
    # arcs between the pieces of a word count as ROOT, as in `TreeInducer.graphs`
    words = np.arange(len(weights))
    weights[:, 0] += weights[words, words + 1]
    weights[words, words + 1] = 0
    parents = np.array(shown.sentence.heads, dtype=float) + 1 if shown.sentence.is_parsed else None
    return draw_heat_map(
        weights, names, ["ROOT", *names], row_name="dependent", column_name="head", parents=parents, value="probability"
    )


def _annotations(loaded: LoadedModel, shown: Shown):
    """Draw the syntactic annotation of every source token."""
    if not hasattr(loaded.model, "annotations"):
        return None
    annotations = loaded.model.annotations(shown.batch["net_input"]["src_tokens"])
    return draw_annotations(annotations[0].float().cpu().numpy(), _tokens(loaded, shown))


def _translation(loaded: LoadedModel, shown: Shown):
    """Draw the attention of target words to the source."""
    return _attention(loaded, shown, source_attention(loaded, shown.batch)["attn"], "attends to")


def _syntax(loaded: LoadedModel, shown: Shown):
    """Draw the attention of target words to syntax, if the model has weights for it."""
    weights = source_attention(loaded, shown.batch).get("syntax_attn")
    return None if weights is None else _attention(loaded, shown, weights, "attends to the syntax of")


def _attention(loaded: LoadedModel, shown: Shown, weights: Tensor, column_name: str):
    (columns, source_words), (rows, target_words) = _source(loaded, shown), _target(loaded, shown)
    weights = join_attention(weights[:1].float().cpu(), source_words[None], target_words[None])[0].numpy()
    return draw_heat_map(weights, rows, columns, row_name="predicted", column_name=column_name)


def _positions(loaded: LoadedModel, shown: Shown):
    """Draw predicted positions, and the attention around them."""
    extra = source_attention(loaded, shown.batch)
    if "position" not in extra:
        return None
    arrays = (tensor.float().cpu().numpy() for tensor in (extra.get("syntax_attn", extra["attn"]), extra["position"]))
    return draw_positions(*arrays, _tokens(loaded, shown, True), _tokens(loaded, shown))


_VIEWS = {
    "heads": _heads,
    "annotations": _annotations,
    "translation": _translation,
    "syntax": _syntax,
    "gate": _gate,
    "position": _positions,
}
"""Kind -> function of a model and a `Shown` that returns a figure, or None if the model does not support it."""


def _source(loaded: LoadedModel, shown: Shown) -> tuple[Sequence[str], Tensor]:
    """Words of the source, EOS last, and the word of each token (T,)."""
    forms = shown.sentence.forms
    return [*forms, _tokens(loaded, shown)[-1]], torch.tensor([*shown.source.token_words, len(forms)])


def _target(loaded: LoadedModel, shown: Shown) -> tuple[Sequence[str], Tensor]:
    """Words of the translation likewise, or its tokens if one of them spans several words."""
    tokens = _tokens(loaded, shown, target=True)
    try:
        words, numbers = join_words(tokens[:-1], loaded.subword_type(shown.subword_type, target=True))
    except ValueError:
        return tokens, torch.arange(len(tokens))
    return [*words, tokens[-1]], torch.tensor([*numbers, len(words)])


def _tokens(loaded: LoadedModel, shown: Shown, target: bool = False) -> list[str]:
    """Tokens of the source, or of the translation, EOS last."""
    task, batch = loaded.task, shown.batch
    if target:
        return [task.target_dictionary[i] for i in batch["target"][0].tolist()]
    return [task.source_dictionary[i] for i in batch["net_input"]["src_tokens"][0].tolist()]
