"""Words and turns that are not used any more, in pages, docstrings, comments, help and messages; and what to write."""

import re
import subprocess

import pytest
from contract.command_lines import REPOSITORY

from fairseq_syntax.cli.program import VERBS, load

# pattern -> what to write instead
TURNS = {
    r"in the place of": "instead of",
    r"\bshall\b": "should, must or will",
    r"(?<![Tt]here\s)\b(is|are|was|were) none\b(?! of)": "is not one; has none",
    r"(?<![Tt]here\s)\b(is|are|was|were) no (?!(longer|more|less|better|worse|faster|other)\b)[a-zA-Z]": "is not a",
    r"\banew\b": "again",
    r"\bone's own\b": "your own",
    r"\bupon\b": "on",
    r"\bdear\b": "expensive",
    r"\bfurther down\b": "below, later",
    r"\bof no consequence\b": "(leave it out)",
    r"\bto be had\b": "available",
    r"\bmay not have none\b": "must have one",
    r"\bstands? behind\b": "follows; explains",
    r"\bfor everything further\b|\bobvious commands\b|\bwhat comes first\b": "(say it plainly)",
    r"\btelling a model what\b|\bfind out by itself\b|\bweighs by a gate\b": "(say it plainly)",
    r"\b(allows?|permits?|enables?) to [a-z]": "lets you",
    r"\bcan not\b": "cannot",
    r"\b(whereof|wherein|thereof|hereby|hitherto|albeit|till)\b": "(a modern word)",
    r"\bc[oa]mes? along\b": "is bundled",
    r"\b(is|are) of (no )?use with\b": "needs; does not go with",
    r"\b(tokens|sentences) an? (update|batch|line|epoch)\b": "per",
    r"\bgoes on where it stopped\b": "resumes",
    r"\bwhat becomes of\b": "what happens to; what is done with",
    r"\binformations\b|\bsoftwares\b|\bevidences\b": "(no plural)",
}
FILES = [
    REPOSITORY / name
    for name in subprocess.run(
        ["git", "ls-files", "*.md", "*.py", "*.sh", "*.toml", "*.ipynb", "Makefile"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    if not name.startswith("tests/")
]


def found(text: str, pattern: str) -> list[str]:
    """Where a turn occurs, over the ends of lines, too."""
    lines = re.compile(pattern.replace(" ", r"\s+(?:#\s+)?"))
    return [f"line {text.count(chr(10), 0, m.start()) + 1}: {m[0]}" for m in lines.finditer(text)]


# options that name what differs from verb to verb; all others mean the same everywhere
OF_THE_VERB = """--input --output --subword-type --trees --seed --source-lang --target-lang --lowercase --subset
--sentence --draw --pairs --head --format --source --system --split --reference --by
--train --target --title --results""".split()


def test_an_option_has_one_wording():
    wordings: dict[str, dict[str, str]] = {}
    for verb in set(VERBS) - {"preprocess"}:  # most of its options are fairseq's
        for action in load(verb).main.build_parser()._actions:
            for option in action.option_strings:
                wordings.setdefault(option, {})[action.help] = verb
    several = {option: texts for option, texts in wordings.items() if len(texts) > 1}
    assert {"--overwrite", "--path", "--cpu"} < wordings.keys()
    assert not {option: texts for option, texts in several.items() if option not in (*OF_THE_VERB, "-s", "-t")}
    assert set(OF_THE_VERB) <= several.keys()


@pytest.mark.skipif(not FILES, reason="not a checkout of git")
@pytest.mark.parametrize("pattern", TURNS)
def test_turns_are_not_used(pattern):
    places = {
        path.relative_to(REPOSITORY).as_posix(): where
        for path in FILES
        if path.exists() and (where := found(path.read_text(encoding="utf-8"), pattern))
    }
    assert not places, f"write: {TURNS[pattern]}"


def test_turns_are_found():
    text = (
        "It is\nnone. There is none of it. It is no tree, there is no other, it is no longer one: in the\n  # place of"
    )
    hits = [hit for pattern in TURNS for hit in found(text, pattern)]
    assert hits == ["line 2: in the\n  # place of", "line 1: is\nnone", "line 2: is no t"]
