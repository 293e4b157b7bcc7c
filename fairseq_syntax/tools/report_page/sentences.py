"""The sentences of which systems make translations of the most different quality, to be searched."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...evaluate.comparison import Evaluation
from ...evaluate.tree_measures import Parse
from ...pictures.dependency_trees import draw_tree
from . import markup


@dataclass
class Translation:
    """What some runs of a system made of a sentence.

    Attributes:
        system: its name.
        runs: labels of the runs, which all made this.
        text: of the translation.
        score: of this sentence alone.
    """

    system: str
    runs: list[str]
    text: str
    score: float


@dataclass
class Difference:
    """A sentence.

    Attributes:
        index: among those that were scored, from 0.
        number: line of the text, from 0.
        spread: best less worst system, each the mean over its runs.
        translations: of all systems in their order, equal ones of a system once.
    """

    index: int
    number: int
    spread: float
    translations: list[Translation]


def most_different(evaluation: Evaluation, metric: str, most: int) -> list[Difference]:
    """The sentences with the largest spread, that one first; those on which all agree are left out.

    Args:
        evaluation: of S systems.
        metric: its name; the score of a sentence alone is taken.
        most: sentences at most.
    """
    corpus = evaluation.corpus
    scores = {system.name: evaluation.sentence_scores(metric, system.name) for system in corpus.systems}
    means = np.stack([runs.mean(axis=0) for runs in scores.values()])
    spread = means.max(axis=0) - means.min(axis=0)
    order = np.argsort(-spread, kind="stable")[:most]
    found = []
    for index in order[spread[order] > 0].tolist():
        translations = []
        for system in corpus.systems:
            made: dict[str, list[int]] = {}
            for run in range(len(system.runs)):
                made.setdefault(system.hypotheses[run][index], []).append(run)
            translations += [
                Translation(
                    system.name, [system.runs[k] for k in runs], made_text, float(scores[system.name][runs[0], index])
                )
                for made_text, runs in made.items()
            ]
        found.append(Difference(index, corpus.numbers[index], float(spread[index]), translations))
    return found


def sentences(evaluation: Evaluation, metric: str, most: int, parses: Sequence[Parse] | None) -> Iterator[str]:
    """HTML of the sentences, the first of which differs most.

    Args:
        evaluation: of S systems and N sentences.
        metric: by which they differ.
        most: sentences at most.
        parses: N of the source; None if they are not known.
    """
    differences = most_different(evaluation, metric, most)
    if not differences:
        return
    systems = [system.name for system in evaluation.corpus.systems]
    boxes = "".join(
        f'<label><input type="checkbox" checked value="{i}"> {markup.isolated(name)}</label>'
        for i, name in enumerate(systems)
    )
    yield markup.paragraph(
        f"The {len(differences)} sentences whose {metric} differs most between systems (each the mean of its seeds), "
        "with the difference of the best from the worst. Words that the reference has not at that place are marked."
    )
    yield (
        '<form class="filters" role="search"><label>Search <input type="search" id="search" autocomplete="off"></label>'
        f"<fieldset><legend>Systems</legend>{boxes}</fieldset>"
        '<output id="found" aria-live="polite"></output></form>'
    )
    for difference in differences:
        yield _sentence(evaluation, difference, metric, systems, parses[difference.index] if parses else None)


def _sentence(
    evaluation: Evaluation, difference: Difference, metric: str, systems: list[str], parse: Parse | None
) -> str:
    """A sentence that unfolds: its texts, and its tree."""
    corpus, index, digits = evaluation.corpus, difference.index, evaluation.metrics[metric].digits
    references = corpus.references[index]
    source = corpus.sources[index] if corpus.sources is not None else None
    rows = [] if source is None else [_row("source", "", markup.isolated(source))]
    rows += [_row("reference", "", markup.isolated(reference)) for reference in references]
    for made in difference.translations:
        name = f"{markup.isolated(made.system)} <small>{markup.text(', '.join(made.runs))}</small>"
        hidden = f' data-system="{systems.index(made.system)}"'
        rows.append(_row(name, f"{made.score:.{digits}f}", markup.marked(made.text, references[0]), hidden))
    head = "".join(f'<th scope="col">{name}</th>' for name in ("system, seeds", markup.text(metric), "text"))
    table = f'<table class="plain"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    body = f'<div class="frame" tabindex="0" role="region" aria-label="Translations">{table}</div>'
    if parse is not None and parse.sentence.is_parsed:
        tree = parse.sentence
        body += markup.figure(draw_tree(tree.forms, tree.heads, labels=tree.deprels), "The parse of the source")
    said = markup.isolated(references[0] if source is None else source)
    title = f"{difference.number}: {said} <small>{markup.text(metric)} {difference.spread:.{digits}f}</small>"
    return f'<div class="sentence">{markup.folded(title, body)}</div>'


def _row(name: str, score: str, content: str, more: str = "") -> str:
    return f'<tr{more}><th scope="row">{name}</th><td class="number">{score}</td><td>{content}</td></tr>'
