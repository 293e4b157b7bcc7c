"""Pictures of a model's view of one sentence, with one function per kind in `look.KINDS`.

A model says what it can show by its methods (`latent_heads`, `syntactic_heads`, `annotations`) and by what its decoder
returns beside the scores ("attn", "syntax_attn", "gate_norm", "position").
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
from .models import Loaded, NothingToShow, encode_line, words_of
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


def show_sentence(
    loaded: Loaded, sentence: Sentence, source: CutSentence, subword_type: str | None = None, **search
) -> Shown:
    """A sentence with the model's own translation; for a model that reads trees, it is parsed if it has no tree."""
    if loaded.task.target_dictionary is None:
        return Shown(sentence, source, None)
    loaded.check_lengths([(len(source.pieces) + 1, 0)], [source.place])
    reads = getattr(loaded.task, "required_inputs", ())
    [ids] = loaded.encode([" ".join(source.pieces)], [sentence] if reads and sentence.is_parsed else None)
    if reads and UNPARSED not in (heads := ids.syntax.heads.tolist()) and not sentence.is_parsed:
        sentence = replace(sentence, heads=heads)
    [hyp] = loaded.translate(loaded.as_dataset([ids]), [len(ids)], **search)
    [batch] = loaded.batches(loaded.as_dataset([ids], [hyp["tokens"].cpu()]), [len(ids)], 10**6)
    return Shown(sentence, source, batch, subword_type)


@torch.no_grad()
def draw(
    loaded: Loaded, shown: Shown, kind: str, decoder: str = "mst", evidence: str = "scores", threshold: float = 0.1
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
            f"{loaded.path}: the architecture {loaded.architecture} has nothing to show for --kind {kind}; leave it "
            "out for all that the model can show"
        )
    return figure


def _given(sentence: Sentence) -> dict:
    """Arguments for drawing the tags of a sentence, and its own tree below the words."""
    tags = sentence.upos if any(tag != "_" for tag in sentence.upos) else None
    return {"tags": tags} | ({"gold": sentence.heads, "gold_labels": sentence.deprels} if sentence.is_parsed else {})


def _tree(inducer: TreeInducer, shown: Shown):
    """Draw the latent tree."""
    [heads] = inducer([shown.source])
    return draw_tree(shown.sentence.forms, heads, **_given(shown.sentence))


def _graph(inducer: TreeInducer, shown: Shown, threshold: float):
    """Draw the arcs of the latent graph, with labels if the model is a parser."""
    [graph] = inducer.graphs([shown.source])
    labels = own_labels(inducer, shown.source)
    return draw_graph(
        shown.sentence.forms, graph.probabilities, threshold=threshold, labels=labels, **_given(shown.sentence)
    )


@torch.no_grad()
def own_labels(inducer: TreeInducer, source: CutSentence) -> list[str] | None:
    """The most probable label of each word, summed over its pieces; None for a model without names of `labels`.

    The inducer must have read the source before.
    """
    model = inducer.loaded.model
    if not hasattr(model, "labels"):
        return None
    tokens = encode_line(inducer.loaded.task.source_dictionary, source.pieces)[None].to(inducer.loaded.device)
    graph = model(tokens, torch.tensor([tokens.shape[1]], device=tokens.device))
    starts = np.flatnonzero(np.diff(source.word_of_token, prepend=-1))
    of_words = np.add.reduceat(graph.labels[0, :-1].double().cpu().numpy(), starts, axis=0)
    return [model.labels[number] for number in of_words.argmax(axis=1)]


def _gate(loaded: Loaded, shown: Shown):
    """Draw the norm of the gate for each predicted token, EOS included (Tran & Bisk 2018, eq. 23 and Figure 6)."""
    norms = source_attention(loaded, shown.batch).get("gate_norm")
    if norms is None:
        return None
    values = norms[0].float().cpu().numpy()
    check_finite(values, f"{loaded.path}: the norms of the gate")
    return draw_gates([GatedSentence(_tokens(loaded, shown, True), values, _tokens(loaded, shown)[:-1])])


@torch.no_grad()
def highest_gates(loaded: Loaded, subset: str, tags: str, form: str) -> str:
    """The table of Tran & Bisk (2018), Sec. 5: how often each tag has the highest norm of the gate in its sentence.

    Its shares of the tokens beside them are what a gate would give that ignores tags. Every piece has the tag of its
    word, and the end of the sentence has its own. Sentences in which unknown pieces hide where words end are left out.

    Args:
        subset: split, of whose references the gates are read.
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
            words, of_token = words_of(tokens[:-1], loaded.subword_type(None, target=True))
            if len(words) == len(tree.forms):
                of_tokens = [*(tree.upos[word] for word in of_token), tokens[-1]]
                highest[of_tokens[int(row[real].argmax())]] += 1
                every.update(of_tokens)
            elif dictionary.unk_word not in tokens:
                raise TreeFormatError(
                    f"{tags}:{tree.line}: {len(tree.forms)} words, but sentence {number} of {subset} has {len(words)} "
                    f"({quoted(' '.join(words))}); tag the target side of this split"
                )
    total, tokens = max(highest.total(), 1), max(every.total(), 1)
    rows = [(tag, highest[tag], 100 * highest[tag] / total, 100 * count / tokens) for tag, count in every.items()]
    rows.sort(key=lambda row: (-row[1], -row[3], row[0]))
    return format_table(["tag", "highest", "% of sentences", "% of tokens"], rows, form)


def _heads(loaded: Loaded, shown: Shown):
    """Draw the first layer of heads that learn from trees, or the probabilities of the latent heads of words."""
    net_input, model = shown.batch["net_input"], loaded.model
    if not hasattr(model, "syntactic_heads"):
        return _latent_heads(loaded, shown) if getattr(model, "has_latent_trees", False) else None
    heads, number = model.syntactic_heads(net_input["src_tokens"], net_input.get("src_syntax"))
    if heads is None:
        return None
    heads, (names, of_token) = heads[0].float().cpu(), _source(loaded, shown)
    weights = join_attention(heads, *(of_token.expand(len(heads), -1),) * 2).numpy()
    parents = None
    if shown.sentence.is_parsed:  # roots and EOS are their own
        of_words = [word if head == ROOT else head for word, head in enumerate(shown.sentence.heads)]
        parents = np.array([*of_words, len(of_words)], dtype=float)
    return draw_attention(weights, names, parents, number)


def _latent_heads(loaded: Loaded, shown: Shown):
    """Draw the probabilities of heads (Figure 4): one row per word, one column for ROOT and per head."""
    net_input = shown.batch["net_input"]
    heads = loaded.model.latent_heads(net_input["src_tokens"], net_input["src_lengths"])
    is_word = heads["word_mask"][0].cpu()
    if not is_word.any():
        raise ValueError("the sentence has no words; give another --sentence")
    arcs, roots = (heads[name][0].float().cpu() for name in ("arc_marginals", "root_marginals"))
    arcs.fill_diagonal_(0)  # in flat attention, a word that chooses itself already counts as a root
    weights = torch.cat((roots[is_word, None], arcs[is_word][:, is_word]), dim=1)
    names, of_token = _source(loaded, shown)
    of_token, names = of_token[is_word], names[: int(of_token[is_word].max()) + 1]
    columns = torch.cat((of_token.new_zeros(1), of_token + 1))
    weights = join_attention(weights[None], columns[None], of_token[None])[0].numpy()
    # arcs between the pieces of a word count as ROOT, as in its graph
    words = np.arange(len(weights))
    weights[:, 0] += weights[words, words + 1]
    weights[words, words + 1] = 0
    parents = np.array(shown.sentence.heads, dtype=float) + 1 if shown.sentence.is_parsed else None
    return draw_heat_map(
        weights, names, ["ROOT", *names], row_name="dependent", column_name="head", parents=parents, value="probability"
    )


def _annotations(loaded: Loaded, shown: Shown):
    """Draw the syntactic annotation of every source token."""
    if not hasattr(loaded.model, "annotations"):
        return None
    annotations = loaded.model.annotations(shown.batch["net_input"]["src_tokens"])
    return draw_annotations(annotations[0].float().cpu().numpy(), _tokens(loaded, shown))


def _translation(loaded: Loaded, shown: Shown):
    """Draw the attention of target words to the source."""
    return _of_target(loaded, shown, source_attention(loaded, shown.batch)["attn"], "attends to")


def _syntax(loaded: Loaded, shown: Shown):
    """Draw the attention of target words to syntax, if it has weights of its own."""
    weights = source_attention(loaded, shown.batch).get("syntax_attn")
    return None if weights is None else _of_target(loaded, shown, weights, "attends to the syntax of")


def _of_target(loaded: Loaded, shown: Shown, weights: Tensor, column_name: str):
    (columns, of_source), (rows, of_target) = _source(loaded, shown), _target(loaded, shown)
    weights = join_attention(weights[:1].float().cpu(), of_source[None], of_target[None])[0].numpy()
    return draw_heat_map(weights, rows, columns, row_name="predicted", column_name=column_name)


def _positions(loaded: Loaded, shown: Shown):
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
"""Kind -> function of a model and of what is shown to it. Returns a figure; None: the model has no such view."""


def _source(loaded: Loaded, shown: Shown) -> tuple[Sequence[str], Tensor]:
    """The names of the words of the source, EOS last, and the word of each token."""
    forms = shown.sentence.forms
    return [*forms, _tokens(loaded, shown)[-1]], torch.tensor([*shown.source.word_of_token, len(forms)])


def _target(loaded: Loaded, shown: Shown) -> tuple[Sequence[str], Tensor]:
    """Likewise of the translation, or its tokens if one is of several words."""
    tokens = _tokens(loaded, shown, target=True)
    try:
        words, numbers = words_of(tokens[:-1], loaded.subword_type(shown.subword_type, target=True))
    except ValueError:
        return tokens, torch.arange(len(tokens))
    return [*words, tokens[-1]], torch.tensor([*numbers, len(words)])


def _tokens(loaded: Loaded, shown: Shown, target: bool = False) -> list[str]:
    """The tokens of the source or of the translation, EOS last."""
    task, batch = loaded.task, shown.batch
    if target:
        return [task.target_dictionary[i] for i in batch["target"][0].tolist()]
    return [task.source_dictionary[i] for i in batch["net_input"]["src_tokens"][0].tolist()]
