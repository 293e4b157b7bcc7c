"""The words of both languages: what the grammar may say and how the transfer translates it.

Every entry pairs an English word with its German one and holds exactly what cannot be derived:
gender, plural, the parts of irregular verbs, the case that a verb governs. What can be derived
(articles, adjective endings, dative plurals) is derived in ``transfer.py``. All words are in lower
case, as the corpus is. The module imports nothing of its neighbours, so it can be read alone.
"""

from __future__ import annotations

from dataclasses import dataclass

SINGULAR = "singular"
PLURAL = "plural"
NUMBERS = (SINGULAR, PLURAL)

HUMAN, ANIMAL, PLACE, THING = "human", "animal", "place", "thing"
ANIMATE = (HUMAN, ANIMAL)
ANYTHING = (HUMAN, ANIMAL, PLACE, THING)


@dataclass(frozen=True)
class Noun:
    """A noun: ``german_oblique`` is the accusative and dative singular (weak nouns differ)."""

    singular: str
    plural: str
    kind: str
    gender: str
    german_singular: str
    german_plural: str
    german_oblique: str

    @property
    def invariant(self) -> bool:
        """Whether the English form hides the number, so that the determiner has to show it."""
        return self.singular == self.plural

    def english(self, number: str) -> str:
        """The English form in ``number``."""
        return self.singular if number == SINGULAR else self.plural


@dataclass(frozen=True)
class Verb:
    """A verb and its government.

    ``frame`` is intransitive, transitive, ditransitive or clausal; ``case`` the case of the German
    object; ``particle`` the separable prefix (the German parts are given without it); ``subjects``
    and ``objects`` the kinds of noun that make sense there.
    """

    base: str
    third: str
    past: str
    participle: str
    frame: str
    infinitive: str
    present: tuple[str, str]
    preterite: tuple[str, str]
    german_participle: str
    particle: str = ""
    case: str = "acc"
    auxiliary: str = "haben"
    subjects: tuple[str, ...] = ANIMATE
    objects: tuple[str, ...] = ANYTHING


@dataclass(frozen=True)
class Auxiliary:
    """An English auxiliary: the German finite forms (by number) and the verb form they take.

    ``with_sein`` replaces the forms for verbs whose perfect is built with "sein".
    """

    german: tuple[str, str]
    takes: str
    with_sein: tuple[str, str] | None = None


@dataclass(frozen=True)
class Adverb:
    """An adverb, where English may put it (front, mid, end) and the tenses it goes with."""

    english: str
    german: str
    positions: tuple[str, ...]
    tenses: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Preposition:
    """A preposition (dative in German) and the kinds of noun that it takes."""

    english: str
    german: str
    kinds: tuple[str, ...] = ANYTHING


@dataclass(frozen=True)
class Adjective:
    """An adjective, its German stem and the kinds of noun that it describes."""

    english: str
    german_stem: str
    kinds: tuple[str, ...] = ANYTHING


@dataclass(frozen=True)
class Determiner:
    """A determiner or numeral of one number (None: both).

    ``paradigm`` names the German declension: der, ein, einige or a numeral, which has no endings.
    """

    english: str
    number: str | None
    paradigm: str
    german: str
    upos: str = "DET"
    weight: float = 1.0


def _noun(english: str, kind: str, gender: str, german: str, plural: str, oblique: str = "") -> Noun:
    singular, _, irregular = english.partition("/")
    return Noun(singular, irregular or singular + "s", kind, gender, german, plural, oblique or german)


NOUNS = (
    _noun("man/men", HUMAN, "m", "mann", "männer"),
    _noun("woman/women", HUMAN, "f", "frau", "frauen"),
    _noun("child/children", HUMAN, "n", "kind", "kinder"),
    _noun("boy", HUMAN, "m", "junge", "jungen", "jungen"),
    _noun("girl", HUMAN, "n", "mädchen", "mädchen"),
    _noun("teacher", HUMAN, "m", "lehrer", "lehrer"),
    _noun("student", HUMAN, "m", "student", "studenten", "studenten"),
    _noun("farmer", HUMAN, "m", "bauer", "bauern", "bauern"),
    _noun("doctor", HUMAN, "m", "arzt", "ärzte"),
    _noun("sister", HUMAN, "f", "schwester", "schwestern"),
    _noun("aunt", HUMAN, "f", "tante", "tanten"),
    _noun("queen", HUMAN, "f", "königin", "königinnen"),
    _noun("king", HUMAN, "m", "könig", "könige"),
    _noun("dog", ANIMAL, "m", "hund", "hunde"),
    _noun("cat", ANIMAL, "f", "katze", "katzen"),
    _noun("bird", ANIMAL, "m", "vogel", "vögel"),
    _noun("horse", ANIMAL, "n", "pferd", "pferde"),
    _noun("cow", ANIMAL, "f", "kuh", "kühe"),
    _noun("mouse/mice", ANIMAL, "f", "maus", "mäuse"),
    _noun("pig", ANIMAL, "n", "schwein", "schweine"),
    _noun("lion", ANIMAL, "m", "löwe", "löwen", "löwen"),
    _noun("monkey", ANIMAL, "m", "affe", "affen", "affen"),
    _noun("sheep/sheep", ANIMAL, "n", "schaf", "schafe"),
    _noun("fish/fish", ANIMAL, "m", "fisch", "fische"),
    _noun("house", PLACE, "n", "haus", "häuser"),
    _noun("garden", PLACE, "m", "garten", "gärten"),
    _noun("church/churches", PLACE, "f", "kirche", "kirchen"),
    _noun("school", PLACE, "f", "schule", "schulen"),
    _noun("field", PLACE, "n", "feld", "felder"),
    _noun("tower", PLACE, "m", "turm", "türme"),
    _noun("ship", PLACE, "n", "schiff", "schiffe"),
    _noun("village", PLACE, "n", "dorf", "dörfer"),
    _noun("tree", THING, "m", "baum", "bäume"),
    _noun("table", THING, "m", "tisch", "tische"),
    _noun("door", THING, "f", "tür", "türen"),
    _noun("bridge", THING, "f", "brücke", "brücken"),
    _noun("book", THING, "n", "buch", "bücher"),
    _noun("flower", THING, "f", "blume", "blumen"),
    _noun("window", THING, "n", "fenster", "fenster"),
    _noun("car", THING, "n", "auto", "autos"),
)

VERBS = (
    Verb(
        *("see", "sees", "saw", "seen", "transitive", "sehen"),
        *(("sieht", "sehen"), ("sah", "sahen"), "gesehen"),
    ),
    Verb(
        *("hear", "hears", "heard", "heard", "transitive", "hören"),
        *(("hört", "hören"), ("hörte", "hörten"), "gehört"),
        objects=ANIMATE,
    ),
    Verb(
        *("find", "finds", "found", "found", "transitive", "finden"),
        *(("findet", "finden"), ("fand", "fanden"), "gefunden"),
    ),
    Verb(
        *("chase", "chases", "chased", "chased", "transitive", "jagen"),
        *(("jagt", "jagen"), ("jagte", "jagten"), "gejagt"),
        objects=ANIMATE,
    ),
    Verb(
        *("visit", "visits", "visited", "visited", "transitive", "besuchen"),
        *(("besucht", "besuchen"), ("besuchte", "besuchten"), "besucht"),
        objects=(HUMAN, ANIMAL, PLACE),
    ),
    Verb(
        *("admire", "admires", "admired", "admired", "transitive", "bewundern"),
        *(("bewundert", "bewundern"), ("bewunderte", "bewunderten"), "bewundert"),
    ),
    Verb(
        *("forget", "forgets", "forgot", "forgotten", "transitive", "vergessen"),
        *(("vergisst", "vergessen"), ("vergaß", "vergaßen"), "vergessen"),
    ),
    Verb(
        *("call", "calls", "called", "called", "transitive", "rufen"),
        *(("ruft", "rufen"), ("rief", "riefen"), "gerufen"),
        particle="an",
        subjects=(HUMAN,),
        objects=(HUMAN,),
    ),
    Verb(
        *("invite", "invites", "invited", "invited", "transitive", "laden"),
        *(("lädt", "laden"), ("lud", "luden"), "geladen"),
        particle="ein",
        objects=ANIMATE,
    ),
    Verb(
        *("stop", "stops", "stopped", "stopped", "transitive", "halten"),
        *(("hält", "halten"), ("hielt", "hielten"), "gehalten"),
        particle="an",
        objects=ANIMATE,
    ),
    Verb(
        *("fetch", "fetches", "fetched", "fetched", "transitive", "holen"),
        *(("holt", "holen"), ("holte", "holten"), "geholt"),
        particle="ab",
        objects=(HUMAN, ANIMAL, THING),
    ),
    Verb(
        *("help", "helps", "helped", "helped", "transitive", "helfen"),
        *(("hilft", "helfen"), ("half", "halfen"), "geholfen"),
        case="dat",
        objects=ANIMATE,
    ),
    Verb(
        *("thank", "thanks", "thanked", "thanked", "transitive", "danken"),
        *(("dankt", "danken"), ("dankte", "dankten"), "gedankt"),
        case="dat",
        objects=ANIMATE,
    ),
    Verb(
        *("follow", "follows", "followed", "followed", "transitive", "folgen"),
        *(("folgt", "folgen"), ("folgte", "folgten"), "gefolgt"),
        case="dat",
        auxiliary="sein",
        objects=ANIMATE,
    ),
    Verb(
        *("sleep", "sleeps", "slept", "slept", "intransitive", "schlafen"),
        *(("schläft", "schlafen"), ("schlief", "schliefen"), "geschlafen"),
    ),
    Verb(
        *("laugh", "laughs", "laughed", "laughed", "intransitive", "lachen"),
        *(("lacht", "lachen"), ("lachte", "lachten"), "gelacht"),
    ),
    Verb(
        *("wait", "waits", "waited", "waited", "intransitive", "warten"),
        *(("wartet", "warten"), ("wartete", "warteten"), "gewartet"),
    ),
    Verb(
        *("sing", "sings", "sang", "sung", "intransitive", "singen"),
        *(("singt", "singen"), ("sang", "sangen"), "gesungen"),
    ),
    Verb(
        *("flee", "flees", "fled", "fled", "intransitive", "fliehen"),
        *(("flieht", "fliehen"), ("floh", "flohen"), "geflohen"),
        auxiliary="sein",
    ),
    Verb(
        *("arrive", "arrives", "arrived", "arrived", "intransitive", "kommen"),
        *(("kommt", "kommen"), ("kam", "kamen"), "gekommen"),
        particle="an",
        auxiliary="sein",
    ),
    Verb(
        *("give", "gives", "gave", "given", "ditransitive", "geben"),
        *(("gibt", "geben"), ("gab", "gaben"), "gegeben"),
        objects=(ANIMAL, THING),
    ),
    Verb(
        *("show", "shows", "showed", "shown", "ditransitive", "zeigen"),
        *(("zeigt", "zeigen"), ("zeigte", "zeigten"), "gezeigt"),
    ),
    Verb(
        *("sell", "sells", "sold", "sold", "ditransitive", "verkaufen"),
        *(("verkauft", "verkaufen"), ("verkaufte", "verkauften"), "verkauft"),
        subjects=(HUMAN,),
        objects=(ANIMAL, PLACE, THING),
    ),
    Verb(
        *("say", "says", "said", "said", "clausal", "sagen"),
        *(("sagt", "sagen"), ("sagte", "sagten"), "gesagt"),
        subjects=(HUMAN,),
    ),
    Verb(
        *("know", "knows", "knew", "known", "clausal", "wissen"),
        *(("weiß", "wissen"), ("wusste", "wussten"), "gewusst"),
    ),
    Verb(
        *("believe", "believes", "believed", "believed", "clausal", "glauben"),
        *(("glaubt", "glauben"), ("glaubte", "glaubten"), "geglaubt"),
    ),
)

# "has" and "have" share one entry in meaning, but only the bare modals and "had" hide the number.
AUXILIARIES = {
    "will": Auxiliary(("wird", "werden"), "infinitive"),
    "could": Auxiliary(("konnte", "konnten"), "infinitive"),
    "must": Auxiliary(("muss", "müssen"), "infinitive"),
    "should": Auxiliary(("sollte", "sollten"), "infinitive"),
    "had": Auxiliary(("hatte", "hatten"), "participle", with_sein=("war", "waren")),
    "has": Auxiliary(("hat", "haben"), "participle", with_sein=("ist", "sind")),
    "have": Auxiliary(("hat", "haben"), "participle", with_sein=("ist", "sind")),
}

AMBIGUOUS_TENSES = ("past", "had", "will", "could", "must", "should")
"""Tenses whose English finite form is the same for both numbers."""

ADVERBS = (
    Adverb("yesterday", "gestern", ("front", "end"), ("past", "had")),
    Adverb("tomorrow", "morgen", ("front", "end"), ("will", "must", "should")),
    Adverb("often", "oft", ("front", "mid")),
    Adverb("sometimes", "manchmal", ("front", "mid")),
    Adverb("suddenly", "plötzlich", ("front", "mid")),
    Adverb("quietly", "leise", ("mid", "end")),
    Adverb("here", "hier", ("front", "end")),
)

PREPOSITIONS = (
    Preposition("near", "bei"),
    Preposition("behind", "hinter"),
    Preposition("beside", "neben"),
    Preposition("under", "unter"),
    Preposition("with", "mit", ANIMATE),
    Preposition("in", "in", (PLACE,)),
    Preposition("from", "aus", (PLACE,)),
)

ADJECTIVES = (
    Adjective("old", "alt"),
    Adjective("small", "klein"),
    Adjective("big", "groß"),
    Adjective("beautiful", "schön"),
    Adjective("young", "jung", ANIMATE),
    Adjective("hungry", "hungrig", ANIMATE),
    Adjective("tired", "müd", ANIMATE),
    Adjective("angry", "zornig", ANIMATE),
    Adjective("new", "neu", (PLACE, THING)),
    Adjective("red", "rot", (PLACE, THING)),
)

DETERMINERS = (
    Determiner("the", None, "der", "d", weight=5.0),
    Determiner("this", SINGULAR, "der", "dies", weight=2.0),
    Determiner("these", PLURAL, "der", "dies", weight=2.0),
    Determiner("every", SINGULAR, "der", "jed"),
    Determiner("a", SINGULAR, "ein", "ein", weight=2.0),
    Determiner("some", PLURAL, "einige", "einig", weight=2.0),
    Determiner("two", PLURAL, "numeral", "zwei", upos="NUM", weight=0.5),
    Determiner("three", PLURAL, "numeral", "drei", upos="NUM", weight=0.5),
)

CONJUNCTIONS = {"because": "weil", "although": "obwohl", "while": "während", "that": "dass"}
"""Subordinating conjunctions; "that" opens complement clauses, the others adverbial ones."""


def _by_form() -> tuple[dict[str, Noun], dict[str, Verb]]:
    nouns = {form: noun for noun in NOUNS for form in (noun.singular, noun.plural)}
    verbs = {form: verb for verb in VERBS for form in (verb.base, verb.third, verb.past, verb.participle)}
    return nouns, verbs


NOUN_BY_FORM, VERB_BY_FORM = _by_form()
ADVERB_BY_FORM = {adverb.english: adverb for adverb in ADVERBS}
PREPOSITION_BY_FORM = {preposition.english: preposition for preposition in PREPOSITIONS}
ADJECTIVE_BY_FORM = {adjective.english: adjective for adjective in ADJECTIVES}
DETERMINER_BY_FORM = {determiner.english: determiner for determiner in DETERMINERS} | {
    "an": next(determiner for determiner in DETERMINERS if determiner.english == "a")
}
