"""Steps that pages call those of the papers are in the commands; the settings of trainings are in papers.toml."""

import pytest
from contract.recipes import EXAMPLES, dry_run

CLAIMS = {
    ("wmt14", "case-insensitive sacreBLEU"): ("evaluate wmt14 sdatt test1", {}, ["--lowercase"]),
    ("wmt17", "multi-bleu.perl computes"): ("evaluate wmt17 sa_nmt", {}, ["--tokenize none"]),
    ("sa_nmt", "the paper's Table 3"): (
        "trees sa_nmt sa_nmt_shared",
        {"UD_EN": "ud.conllu"},
        ["fairseq-syntax attachment", "--by deprel", "--grammar"],
    ),
    ("sa_nmt", "has the highest gate of its sentence (Sec. 5)"): (
        "trees sa_nmt sa_nmt_shared",
        {"TARGET_CONLLU": "tags.conllu"},
        ["--subset test --tags tags.conllu"],
    ),
    ("lgp", "`auto` has relative frequencies, as the paper"): ("prepare lgp", {"PAIRS": "10000"}, ["length-prior "]),
    ("aspec", '`AVERAGED=1` and `COPY_UNKNOWN=1` are its "+Averaging" and "+UnkRep"'): (
        "evaluate aspec lgp",
        {"AVERAGED": "1", "COPY_UNKNOWN": "1"},
        ["lgp-1/average.pt", "--replace-unk", "--length-prior auto"],
    ),
    ("nc11", "length penalty 0.6, and the last checkpoint, as in the paper"): (
        "evaluate nc11 pascal",
        {},
        ["--lenpen 0.6", "checkpoint_last.pt"],
    ),
}


@pytest.mark.parametrize(("page", "claim"), CLAIMS)
def test_what_a_page_calls_the_papers_is_done(page, claim):
    assert claim in " ".join((EXAMPLES / page / "README.md").read_text(encoding="utf-8").split())
    command, variables, needed = CLAIMS[page, claim]
    run = "\n".join(dry_run("recipe.sh", *command.split(), **variables))
    assert [part for part in needed if part not in run] == []
