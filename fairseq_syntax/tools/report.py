"""fairseq-syntax report: write an HTML page about a folder of results, or about translations of any origin.

The page is a single file, readable offline, which can be searched, sorted and printed. It has scores and tests,
training curves, scores by kind of sentence, minimal pairs, the cost of worse parses, the sentences on which systems
differ most, pictures of attention, and all settings.

  --look NAME FILE                      a picture (.svg, .png) drawn by another verb
  --look NAME CHECKPOINT DATA SUBSET    all pictures that `look` draws of the model, for the sentences of --sentence

examples:
  fairseq-syntax report --system baseline base.1 base.2 --system new new.1 new.2 --reference test.de --source test.en \\
      --tokenize 13a --output report.html
  fairseq-syntax report docs/results/agreement --split test --reference corpus/test.de --source corpus/test.en \\
      --parse corpus/test.en.conllu --by length --by depth --output report.html
  fairseq-syntax report docs/results/agreement --split test --reference corpus/test.de --source corpus/test.en \\
      --system transformer --system pascal --contrast transformer.json pascal.json \\
      --look pascal checkpoints/pascal/checkpoint_best.pt data-bin test --sentence 3 17 --output report.html
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..files import written
from .compare import add_buckets, add_chance, add_scores, check_scored, scoring_of
from .verb import Verb, add_shared, positive


def report(
    results: str | None,
    split: str | None,
    systems: Sequence[Sequence[str]] = (),
    baselines: Sequence[str] = (),
    title: str | None = None,
    contrast: Sequence[str] = (),
    look: Sequence[Sequence[str]] = (),
    sentences: Sequence[int] = (0,),
    most: int = 50,
    scoring: Mapping | None = None,
) -> str:
    """The HTML page about a folder of results, or about translations alone.

    Args:
        results, split, systems, baselines: see `evaluate.results.systems_of`.
        title: title of the page; None for corpus and split, or the names of the systems.
        contrast: records written by `contrast --output`.
        look, sentences: see `sections.looks`.
        most: largest number of sentences on which systems differ.
        scoring: further arguments of `compare`, of which `reference` is required.

    Raises ValueError: files do not match, see `compare`; OSError: a file is missing.
    """
    from ..evaluate.comparison import compare
    from ..evaluate.results import systems_of
    from . import markup, sections

    # the slow steps come last, so that wrong files are refused at once
    minimal_pairs = sections.read_minimal_pairs(contrast)
    pictures = list(sections.looks(look, sentences))
    translations, recorded = systems_of(systems, results, split, baselines)
    options = {**(scoring or {}), "split": split}
    compared = compare(translations, baselines=baselines, records=recorded, **options)
    records = {system["name"]: recorded.get(system["name"], {}) for system in compared.content["systems"]}
    probes = sections.probes_of(results, records) if results else {}
    rendered = sections.sections(compared, records, probes, minimal_pairs, pictures, most)
    corpora = {record["corpus"] for runs in records.values() for record in runs.values() if "corpus" in record}
    links = "".join(f'<li><a href="#{name}">{heading}</a></li>' for name, (heading, _) in rendered.items())
    if not title:
        title = f"{', '.join(sorted(corpora)) or Path(results).name}: {split}" if results else ", ".join(records)
    return markup.frame(title, links, "\n".join(body for _, body in rendered.values()))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "results",
        nargs="?",
        metavar="RESULTS",
        help="folder of records and translations from examples/experiments (without it, give --system with files)",
    )
    add("--output", required=True, metavar="FILE", help="page to write (.html)")
    add_shared(parser, "--overwrite")
    add("--title", metavar="TEXT", help="title of the page (default: corpus and split)")
    group = parser.add_argument_group("systems").add_argument
    group("--split", metavar="NAME", help="split of RESULTS, such as test")
    group("--reference", required=True, action="append", metavar="FILE", help="reference text; may be repeated")
    group("--source", metavar="FILE", help="source text")
    group(
        "--system",
        action="append",
        nargs="+",
        default=[],
        metavar=("NAME", "FILE"),
        help="system of RESULTS, or another one and its translations, one file per seed (default: all of RESULTS)",
    )
    group(
        "--baseline",
        action="append",
        metavar="NAME",
        help="baseline of the tests; may be repeated (default: the first system)",
    )
    add_scores(parser)
    add_buckets(parser.add_argument_group("breakdown"))
    add_chance(parser.add_argument_group("tests and intervals"))
    _add_more(parser.add_argument_group("more on the page"))


def _add_more(group) -> None:
    add = group.add_argument
    add(
        "--most",
        type=positive,
        default=50,
        metavar="N",
        help="show the N sentences on which systems differ most (default: 50)",
    )
    add("--contrast", nargs="+", default=[], metavar="FILE", help="records written by contrast --output")
    add(
        "--look",
        action="append",
        nargs="+",
        default=[],
        metavar=("NAME", "FILE"),
        help="show the attention of a system: a picture, or CHECKPOINT DATA SUBSET; may be repeated",
    )
    add("--sentence", nargs="+", type=int, default=[0], metavar="N", help="sentences for --look, from 0 (default: 0)")


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if Path(args.output).suffix.lower() not in (".html", ".htm"):
        parser.error(f"--output {args.output}: give a name that ends in .html")
    for name, *rest in args.look:
        if len(rest) not in (1, 3):
            parser.error(f"--look {name}: give a picture, or CHECKPOINT DATA SUBSET")
        if len(rest) == 1 and Path(rest[0]).suffix.lower() not in (".svg", ".png"):
            parser.error(f"--look {name} {rest[0]}: is not .svg or .png; for a model, give CHECKPOINT DATA SUBSET")
    if bool(args.results) != bool(args.split):
        parser.error("RESULTS and --split go together")
    if not args.results and not (args.system and all(files for _, *files in args.system)):
        parser.error("give RESULTS, or --system NAME FILE with the translations of every system")
    check_scored(parser, args)


def run(args: argparse.Namespace) -> None:
    page = report(
        args.results,
        args.split,
        args.system,
        args.baseline or (),
        args.title,
        args.contrast,
        args.look,
        args.sentence,
        args.most,
        scoring_of(args),
    )
    with written(args.output) as file:
        file.write(page)


main = Verb(__doc__, add_arguments, run, check, outputs=("output",))
