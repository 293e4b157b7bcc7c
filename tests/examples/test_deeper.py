"""The part of the agreement corpus that nests deeper in the challenge set than in training (`generate.py --deeper`)."""

import subprocess
import sys

from conftest import REPOSITORY

AGREEMENT = REPOSITORY / "examples" / "agreement"
# sentences, and how many translations their trees have
READINGS = {
    "the dog saw the cat in the garden .": 2,
    "the dog that the cats that the man saw helped slept .": 1,
    "the dogs near the cat behind the house slept .": 1,  # any tree of the phrases has the same
    "the man saw the dog near the cat behind the house .": 3,  # both on the dog, one, both on the verb
    "the dogs near the cat that slept saw a bird .": 2,
    "the dogs near the cat that sleeps saw a bird .": 1,
    "the dogs near the cats that slept saw a bird .": 1,  # either has the same pronoun
    "the man saw the dog that slept here .": 2,
    "the man that slept often saw the dog .": 2,
    "the man has called the dog that slept because the boy laughed .": 2,  # the clause is below or behind "angerufen"
    "the dog saw the man that slept near the house .": 3,  # also a phrase on the man, behind his clause
    "the cat dog saw the man .": 0,
}


def run(code: str, *arguments: object) -> str:
    """Output of Python that can import the example's modules."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, cwd=AGREEMENT, capture_output=True, text=True, check=True).stdout


def test_numbers_of_translations_are_those_found_by_hand():
    code = """
import sys
from lexicon import *
from readings import trees
from transfer import translate
from trees import Word
tags = {p.english: "ADP" for p in PREPOSITIONS} | {c: "SCONJ" for c in CONJUNCTIONS} | {".": "PUNCT", "that": "PRON"}
tables = NOUN_BY_FORM, VERB_BY_FORM, ADVERB_BY_FORM, DETERMINER_BY_FORM, AUXILIARIES
tags |= {form: tag for tag, table in zip(("NOUN", "VERB", "ADV", "DET", "AUX"), tables) for form in table}
for line in sys.argv[1:]:
    words = [Word(i, form, tags[form], 0, "") for i, form in enumerate(line.split(), 1)]
    print(len({" ".join(translate(tree)) for tree in trees(words)}))
"""
    assert dict(zip(READINGS, map(int, run(code, *READINGS).split()), strict=True)) == READINGS
