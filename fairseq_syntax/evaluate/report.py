"""An HTML page about a comparison, readable offline: verdicts, scores, tests, buckets, sentences that differ most."""

import difflib
import re
from collections.abc import Iterator
from importlib.resources import files

import numpy as np
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from ..trees.subwords import JOINER
from ..trees.text import visible
from ..version import __version__
from .comparison import Comparison, Evaluation, bucket_table, notes, score_tables, settings_table
from .tables import TableFormat
from .verdicts import translating, verdicts

_PAGES = Environment(
    loader=FunctionLoader(lambda name: files(__package__).joinpath(name).read_text(encoding="utf-8")),
    autoescape=True,
    trim_blocks=True,
    undefined=StrictUndefined,
    # control characters of texts are made visible
    finalize=lambda value: visible(value) if type(value) is str else value,
)


def page(compared: Comparison, title: str, most: int = 50) -> str:
    """HTML of the page, with the `most` sentences on which systems differ most in the first metric."""
    content, metric = translating(compared.content), compared.content["metrics"][0]["name"]
    tables = {caption: Markup(table) for caption, table in score_tables(content, TableFormat.html)}
    buckets = [
        (f"{metric} by {kind['title']}", Markup(bucket_table(content, kind, TableFormat.html)), notes(kind))
        for kind in content["buckets"]
    ]
    return _PAGES.get_template("page.html.jinja2").render(
        title=title,
        version=__version__,
        metric=metric,
        verdicts=verdicts(compared.content),
        scores=tables,
        buckets=buckets,
        sentences=list(_sentences(compared.evaluation, metric, most)),
        settings=Markup(settings_table(content, TableFormat.html)),
    )


def most_different(evaluation: Evaluation, metric: str, most: int) -> list[tuple[int, float]]:
    """Index and spread of the sentences whose scores, averaged over runs, differ most between systems."""
    means = np.stack([evaluation.sentence_scores(metric, s.name).mean(axis=0) for s in evaluation.corpus.systems])
    spread = means.max(axis=0) - means.min(axis=0)
    order = np.argsort(-spread, kind="stable")[:most]
    return [(index, float(spread[index])) for index in order[spread[order] > 0].tolist()]


def _sentences(evaluation: Evaluation, metric: str, most: int) -> Iterator[dict]:
    """Contents of the page for each sentence; a translation by several seeds of a system is listed once."""
    corpus, digits = evaluation.corpus, evaluation.metrics[metric].digits
    for index, spread in most_different(evaluation, metric, most):
        references, translations = corpus.references[index], []
        for system in corpus.systems:
            scores = evaluation.sentence_scores(metric, system.name)[:, index]
            runs: dict[str, list[int]] = {}
            for run, hyps in enumerate(system.hypotheses):
                runs.setdefault(hyps[index], []).append(run)
            for text, numbers in runs.items():
                labels = [system.runs[run] for run in numbers]
                score = f"{scores[numbers[0]]:.{digits}f}"
                translations.append((system.name, labels, score, marked(text, references[0])))
        source = [("source", re.sub(f" ?{JOINER} ?", "", corpus.sources[index]))] if corpus.sources is not None else []
        yield {
            "number": corpus.numbers[index],
            "spread": f"{spread:.{digits}f}",
            "texts": [*source, *(("reference", text) for text in references)],
            "translations": translations,
        }


def marked(hypothesis: str, reference: str) -> list[tuple[str, bool]]:
    """Parts of a translation, and whether the reference has the same words in the same place."""
    hyp, ref = hypothesis.split(), reference.split()
    parts = difflib.SequenceMatcher(None, ref, hyp, autojunk=False).get_opcodes()
    return [(" ".join(hyp[i:j]), kind == "equal") for kind, _, _, i, j in parts if i < j]
