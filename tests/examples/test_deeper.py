"""The part of the agreement corpus that nests deeper in the challenge set than in training (`generate.py --deeper`)."""

from conftest import REPOSITORY

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


def test_numbers_of_translations_are_those_found_by_hand(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "examples" / "agreement"))
    import lexicon
    from readings import trees
    from transfer import translate
    from trees import Word

    tags = {p.english: "ADP" for p in lexicon.PREPOSITIONS} | {c: "SCONJ" for c in lexicon.CONJUNCTIONS}
    tags |= {".": "PUNCT", "that": "PRON"} | dict.fromkeys(lexicon.AUXILIARIES, "AUX")
    for tag in ("NOUN", "VERB", "ADVERB", "DETERMINER"):
        tags |= dict.fromkeys(getattr(lexicon, f"{tag}_BY_FORM"), tag[: 3 if tag in ("ADVERB", "DETERMINER") else 4])
    for line, count in READINGS.items():
        words = [Word(i, form, tags[form], 0, "") for i, form in enumerate(line.split(), 1)]
        assert len({" ".join(translate(tree)) for tree in trees(words)}) == count, line
