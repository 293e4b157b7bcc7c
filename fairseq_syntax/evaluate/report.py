"""An HTML page about a comparison, readable offline: verdicts, scores, tests, buckets, sentences that differ most."""

import base64
import difflib
import io
import re
from collections.abc import Iterator
from functools import partial
from importlib.resources import files

import numpy as np
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from ..pictures.dependency_trees import draw_tree
from ..pictures.figures import NO_DATE, plt, settled
from ..trees.subwords import JOINER
from ..trees.text import visible
from ..version import __version__
from .bucket_pictures import draw_buckets
from .comparison import Comparison, Evaluation, bucket_table, notes, score_tables, settings, test_notes
from .tables import TableFormat
from .verdicts import translating, verdicts

_PAGES = Environment(
    loader=FunctionLoader(lambda name: files(__package__).joinpath(name).read_text(encoding="utf-8")),
    autoescape=True,
    trim_blocks=True,
    undefined=StrictUndefined,
    # texts with control characters are shown, not obeyed
    finalize=lambda value: visible(value) if type(value) is str else value,
)


def page(compared: Comparison, title: str, most: int = 50) -> str:
    """The page, with at most `most` sentences on which systems differ in the first metric."""
    content, metric = translating(compared.content), compared.content["metrics"][0]["name"]
    kinds = [(f"{metric} by {kind['title']}, 95 % intervals", kind) for kind in content["buckets"]]
    table = partial(bucket_table, content, form=TableFormat.html)
    names = [system["name"] for system in content["systems"]]
    return _PAGES.get_template("page.html.jinja2").render(
        title=title,
        version=__version__,
        metric=metric,
        verdicts=verdicts(compared.content),
        scores=[(caption, _captioned(html, caption)) for caption, html in score_tables(content, TableFormat.html)],
        notes=test_notes(content),
        buckets=[
            (caption, _picture(draw_buckets([kind], names, metric)), _captioned(table(kind), caption), notes(kind))
            for caption, kind in kinds
        ],
        sentences=list(_sentences(compared, metric, most)),
        settings=Markup(settings(content, TableFormat.html)),
    )


def _captioned(table: str, caption: str) -> Markup:
    """A table from `format_table`, which escapes its cells, with a caption."""
    return Markup(table).replace("<table>", Markup("<table><caption>{}</caption>").format(visible(caption)), 1)


def _picture(drawing) -> str:
    """Address of a matplotlib figure that it contains itself, isolated from the scripts and names of the page."""
    held = io.BytesIO()
    settled(drawing)
    drawing.savefig(held, format="svg", bbox_inches="tight", metadata=NO_DATE[".svg"])
    plt.close(drawing)
    return f"data:image/svg+xml;base64,{base64.b64encode(held.getvalue()).decode('ascii')}"


def most_different(evaluation: Evaluation, metric: str, most: int) -> list[tuple[int, float]]:
    """Index and spread of the sentences with the largest spread of scores, each system's the mean over its runs."""
    means = np.stack([evaluation.sentence_scores(metric, s.name).mean(axis=0) for s in evaluation.corpus.systems])
    spread = means.max(axis=0) - means.min(axis=0)
    order = np.argsort(-spread, kind="stable")[:most]
    return [(index, float(spread[index])) for index in order[spread[order] > 0].tolist()]


def _sentences(compared: Comparison, metric: str, most: int) -> Iterator[dict]:
    """What the page shows of each sentence: equal translations by several seeds of a system stand once."""
    evaluation, corpus = compared.evaluation, compared.evaluation.corpus
    digits = evaluation.metrics[metric].digits
    for index, spread in most_different(evaluation, metric, most):
        references, translations = corpus.references[index], []
        for system in corpus.systems:
            scores = evaluation.sentence_scores(metric, system.name)
            runs: dict[str, list[int]] = {}
            for run, hypotheses in enumerate(system.hypotheses):
                runs.setdefault(hypotheses[index], []).append(run)
            translations += [
                {
                    **{"system": system.name, "runs": [system.runs[run] for run in of_text]},
                    **{"score": f"{scores[of_text[0], index]:.{digits}f}", "words": marked(text, references[0])},
                }
                for text, of_text in runs.items()
            ]
        tree = compared.parses[index] if compared.parses else None
        drawn = ""
        if tree is not None and tree.is_parsed:
            drawn = _picture(draw_tree(tree.forms, tree.heads, labels=tree.deprels))
        source = [("source", re.sub(f" ?{JOINER} ?", "", corpus.sources[index]))] if corpus.sources is not None else []
        yield {
            "number": corpus.numbers[index],
            "spread": f"{spread:.{digits}f}",
            "texts": [*source, *(("reference", text) for text in references)],
            "translations": translations,
            "tree": drawn,
        }


def marked(hypothesis: str, reference: str) -> list[tuple[str, bool]]:
    """The words of a translation, in parts, and whether the reference has them in this place."""
    hyp, ref = hypothesis.split(), reference.split()
    parts = difflib.SequenceMatcher(None, ref, hyp, autojunk=False).get_opcodes()
    return [(" ".join(hyp[i:j]), kind == "equal") for kind, _, _, i, j in parts if i < j]
