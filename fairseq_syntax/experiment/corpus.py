"""Checks and cleaning of raw parallel text, and the data directories that an experiment trains on."""

import json
import shutil
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, fields
from itertools import product
from pathlib import Path

import numpy as np

from ..data.parsers import ParserOptions, load_parser
from ..data.text.languages import scoring_of
from ..data.text.tokenizers import form_of, load_tokenizer, normalize
from ..evaluate.corpus import closer, deviations
from ..evaluate.metrics import Bleu
from ..files import link_or_copy, written
from ..progress import progress_bar
from ..trees.conllu import format_sentence, read_conllu
from ..trees.perturbation import Perturbation
from ..trees.text import read_lines, sentence_lines
from .plan import PERTURBED, Cleaning, CorpusSettings, Plan, PlanError
from .run import RunError, error_message, say

LONGEST = 1023
"""Longest sentence that fairseq's Transformers read by default, in pieces, without EOS."""
_BLOCK = 500  # lines that are checked together


def text_path(prefix: str, language: str) -> Path:
    """Path of one side of a text, plain or .gz. Raises FileNotFoundError: there is none."""
    for path in (Path(f"{prefix}.{language}"), Path(f"{prefix}.{language}.gz")):
        if path.is_file():
            return path
    raise FileNotFoundError(f"{prefix}.{language}: no such text; check the prefix and the language")


def read_parallel(prefix: str, corpus: CorpusSettings) -> list[tuple[str, str]]:
    """Read the pairs of a text, normalised. Raises ValueError: its sides differ in length, or it is empty."""
    paths = [text_path(prefix, language) for language in (corpus.source, corpus.target)]
    sides = [[normalize(line) for line in sentence_lines(path)] for path in paths]
    if len(sides[0]) != len(sides[1]):
        raise PlanError(
            f"{paths[0]}: {len(sides[0])} lines, but {paths[1]} has {len(sides[1])}; each translation must be on the "
            "same line as its source"
        )
    if not sides[0]:
        raise PlanError(f"{paths[0]}: has no sentences")
    return list(zip(*sides, strict=True))


def check(corpus: CorpusSettings, out: Path | None = None) -> dict[str, list[tuple[str, str]]]:
    """Read and check all sets: name -> pairs.

    Raises ValueError: see `read_parallel`; or a set is named twice, untranslated, swapped, its lines are shifted, or it
    is where an experiment in the folder `out` writes its own text.
    """
    prefixes = corpus.prefixes
    places: dict[Path, str] = {}
    for name, prefix in prefixes.items():
        place = text_path(prefix, corpus.source).resolve()
        if (other := places.setdefault(place, name)) != name:
            raise PlanError(f"{prefix}: is given as both {other} and {name}; give each its own text")
        if out and place.parent == (out / "raw").resolve():
            raise PlanError(f"{prefix}: the experiment writes its own text into {place.parent}; give another folder")
    pairs = {name: read_parallel(prefix, corpus) for name, prefix in prefixes.items()}
    words = [set(" ".join(side).casefold().split()) for side in zip(*pairs["train"][:20_000], strict=True)]
    for name, rows in pairs.items():
        _check_order(prefixes[name], corpus, rows)
        sides = [set(" ".join(side).casefold().split()) for side in zip(*rows, strict=True)]
        own, crossed = (sum(len(sides[i] & words[i ^ other]) for i in (0, 1)) for other in (0, 1))
        if crossed > own:
            raise PlanError(f"{prefixes[name]}: its languages are swapped, compared with {corpus.train}; rename them")
        same = sum(folded(source) == folded(target) for source, target in rows)
        if same > len(rows) / 2 and name != "train":
            raise PlanError(f"{prefixes[name]}: both sides are the same in {same} of {len(rows)} pairs; translate them")
    return pairs


def folded(text: str) -> str:
    """A text without spaces, case-folded."""
    return "".join(text.casefold().split())


def _check_order(prefix: str, corpus: CorpusSettings, pairs: list[tuple[str, str]]) -> None:
    """Raise PlanError if translations in one of 40 blocks are clearly closer to the sources a line above or below."""
    starts = sorted({int(line) // _BLOCK * _BLOCK for line in np.linspace(0, len(pairs) - 1, 40)})
    for start, (step, place) in product(starts, ((1, "above"), (-1, "below"))):
        if deviations(closer(*zip(*pairs[start : start + _BLOCK], strict=True), step)) < -4:
            raise PlanError(
                f"{text_path(prefix, corpus.target)}:{start + 1}: from about here on, lines translate the source line "
                f"{place}; find the line that is missing, or one too many"
            )


def check_needs(plan: Plan, out: Path) -> None:
    """Raise ValueError unless the packages, models and disk space for the whole experiment are available."""
    from .. import systems as systems  # registers their parsers

    Bleu(tokenize=plan.tokenize)
    if plan.corpus is not None and not (out / "prepared").exists():
        text, target = plan.text, plan.corpus.target
        parser = load_parser(text.parser, text, plan.corpus.source)
        if text.parser != "conllu":
            parser.parse([["."]])
        for tokenizer, language in ((text.source_tokenizer, plan.corpus.source), (text.target_tokenizer, target)):
            load_tokenizer(tokenizer or "words", language)
        fitting = scoring_of(
            [line for path in plan.corpus.tests.values() for line in read_lines(text_path(path, target))]
        )
        if fitting not in ("none", "13a") and plan.tokenize in ("none", "13a"):
            raise PlanError(f"{plan.path}: tokenize = {plan.tokenize!r}, but {target} has no spaces: {fitting!r}")
        needed = 200e6 * len(list(plan.runs()))  # bytes of checkpoints
        free = shutil.disk_usage(next(path for path in (out, *out.parents) if path.exists())).free
        if free < needed:
            raise PlanError(
                f"{out}: {free / 1e9:.1f} GB are free, but runs take {needed / 1e9:.1f}; give another folder"
            )


def doubts(corpus: CorpusSettings, pairs: dict[str, list[tuple[str, str]]]) -> Iterator[str]:
    """Warnings about sets that may be shuffled, too small, or have overlong sentences."""
    for name, rows in pairs.items():
        signs = closer(*zip(*rows[: 4 * _BLOCK], strict=True))
        if np.count_nonzero(signs) >= 200 and deviations(signs) < 2.5:
            yield f"{corpus.prefixes[name]}: translations fit other lines as well as their own; are they shuffled?"
        least, use = {"train": (0, ""), "valid": (500, "choose checkpoints")}.get(name, (1000, "compare systems"))
        if name != "train" and (most := max(max(map(len, pair)) for pair in rows)) > LONGEST:
            yield f"{corpus.prefixes[name]}: a sentence of {most:,} characters; Transformers read {LONGEST:,} pieces"
        if len(rows) < least:
            yield f"{corpus.prefixes[name]}: {len(rows)} pairs; give {least:,} or more to {use}"


def clean(
    pairs: list[tuple[str, str]], held_out: list[tuple[str, str]], cleaning: Cleaning
) -> tuple[list[tuple[str, str]], Counter]:
    """The training pairs to keep, and the number of pairs left out for each reason.

    Args:
        pairs: normalised training pairs.
        held_out: pairs of the other sets; their sentences are left out in any case and spacing.
        cleaning: limits of lengths.
    """
    characters = [sum(len(pair[side]) for pair in pairs) for side in (0, 1)]
    usual = characters[0] / max(characters[1], 1) or 1
    known = [{folded(pair[side]) for pair in held_out} for side in (0, 1)]
    seen: set[tuple[str, str]] = set()
    kept, left_out = [], Counter()
    for pair in progress_bar(pairs, desc="cleaning", unit=" pairs"):
        source, target = pair
        ratio = len(source) / max(len(target), 1) / usual
        keys = [folded(text) for text in pair]
        reasons = {
            "empty": not (source and target),
            "too long": max(len(source), len(target)) > cleaning.longest,
            "length ratio": not 1 / cleaning.ratio <= ratio <= cleaning.ratio,
            "target = source": keys[0] == keys[1],
            "repeated": pair in seen,
            "in a test set": keys[0] in known[0] or keys[1] in known[1],
        }
        seen.add(pair)
        reason = next((name for name, applies in reasons.items() if applies), None)
        if reason:
            left_out[reason] += 1
        else:
            kept.append(pair)
    return kept, left_out


def prepare(plan: Plan, out: Path) -> None:
    """Clean the text, and make the data directories that do not exist.

    Raises ValueError: the text is wrong, or the data were made with other settings; RunError: a step fails.
    """
    done, kinds = out / "prepared", plan.perturbed()
    settings = {name: asdict(getattr(plan, name)) for name in ("corpus", "cleaning", "text")}
    settings = json.loads(json.dumps(settings))  # as JSON has them
    made = json.loads(done.read_text(encoding="utf8") or "{}") if done.exists() else {}
    if made and settings != {name: made.get(name) for name in settings}:
        raise PlanError(
            f"{plan.path}: the data were made with another [corpus], [cleaning] or [text]; restore it, or remove "
            f"{done}, and runs and results of the old data, to make them again"
        )
    if not made:
        _write_raw(plan, out)
    if not made or set(kinds) - set(made["kinds"]):
        try:
            _make(plan, out, made.get("kinds"))
        except Exception as error:  # parsers raise errors of their own classes
            raise RunError(f"the data could not be made: {error_message(error)}") from error
        with written(str(done)) as file:
            json.dump({**settings, "kinds": kinds}, file)


def _write_raw(plan: Plan, out: Path) -> None:
    """Write the clean text into raw/."""
    corpus = plan.corpus
    pairs = check(corpus, out)
    kept, left_out = clean(
        pairs["train"], [pair for name in pairs if name != "train" for pair in pairs[name]], plan.cleaning
    )
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in left_out.most_common()) or "none left out"
    say(f"{corpus.train}: {len(kept):,} of {len(pairs['train']):,} pairs kept ({reasons})")
    for doubt in doubts(corpus, pairs):
        say(f"warning: {doubt}")
    if not kept:
        raise PlanError(f"{corpus.train}: no pairs are left; see [cleaning] in {plan.path}")
    sets = [kept, pairs["valid"], *(pairs[name] for name in corpus.tests)]
    form = form_of(read_lines(text_path(corpus.train, corpus.target)))
    for name, rows in zip(subsets(plan), sets, strict=True):
        for side, language in enumerate((corpus.source, corpus.target)):
            with written(str(out / "raw" / f"{name}.{language}")) as file:
                file.writelines((unicodedata.normalize(form, pair[1]) if side else pair[0]) + "\n" for pair in rows)


def _make(plan: Plan, out: Path, made: list[str] | None) -> None:
    """Make the data directories of clean text.

    Args:
        made: kinds of perturbed trees that exist already, as does the other data; None if nothing does.
    """
    from ..preparation.data import preprocess, preprocess_options  # with fairseq, which takes seconds
    from ..preparation.text import text_preparation

    source, target, text = plan.corpus.source, plan.corpus.target, plan.text
    options = preprocess_options(source_lang=source, target_lang=target, joined_dictionary=text.joined)

    def prefixes(folder: Path) -> dict[str, str]:
        return {name: str(folder / name) for name in subsets(plan)}

    data = out / "data-bin-parser"
    if made is None:
        say("making tokens, pieces, trees and data")
        raw = text_preparation(
            prefixes(out / "raw"),
            source,
            target,
            source_tokenizer=text.source_tokenizer or None,
            target_tokenizer=text.target_tokenizer or None,
            lowercase=text.lowercase,
            subword_type=text.subword_type or None,
            subword_size=text.subword_size,
            joined=text.joined,
            parser=text.parser,
            options=ParserOptions(**{option.name: getattr(text, option.name) for option in fields(ParserOptions)}),
        )
        preprocess(options | {"destdir": str(data)}, raw.splits, raw, out / "text", overwrite=True)
    for kind in sorted(set(plan.perturbed()) - set(made or ())):
        say(f"making {kind} trees")
        goal = out / f"data-bin-{kind}"
        for name in subsets(plan):
            tree, perturbation = f"{name}.{source}.conllu.gz", Perturbation(0, 1)
            with written(str(out / kind / tree)) as file:
                for number, sentence in enumerate(read_conllu(out / "text" / tree)):
                    file.write(format_sentence(perturbation(number, sentence, PERTURBED[kind])))
            _link(out / "text" / f"{name}.{source}", out / kind / f"{name}.{source}")
        _link(data, goal)
        preprocess(options | {"destdir": str(goal)}, prefixes(out / kind), only_syntax=True, overwrite=True)


def subsets(plan: Plan) -> list[str]:
    """Names of the sets in the output folder: train, valid, test, test1, …"""
    return ["train", *(split.subset for split in plan.splits.values())]


def _link(old: Path, new: Path) -> None:
    shutil.rmtree(new, ignore_errors=True)
    new.unlink(missing_ok=True)
    link_or_copy(old, new)
