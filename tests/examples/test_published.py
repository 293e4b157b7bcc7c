"""The published outputs of PASCAL: our scores are those of the authors' logs, and the page has our differences."""

import json
import re

import pytest
from contract.command_lines import REPOSITORY

from fairseq_syntax.tools.compare import main

NEWSTEST2016 = ["nc11en2de", "nc11de2en", "wmt16en2de"]
PAGE = REPOSITORY / "docs" / "records" / "published.md"


@pytest.mark.full
@pytest.mark.parametrize("task", [*NEWSTEST2016, "wmt17en2de", "wmt18en2tr", "wat18en2ja"])
def test_scores_are_those_of_the_authors_logs_and_on_the_page(real_data, capsys, task):
    folder = real_data / "pascal-outputs"
    logs = [line.split() for line in (folder / "bleu.txt").read_text(encoding="utf-8").splitlines()]
    logged = {words[1]: words[4] for words in logs if words[0] == task}
    systems = [word for name in logged for word in ("--system", name, str(folder / task / f"{name}.gz"))]
    tokenize = ["--tokenize", "none" if task == "wat18en2ja" else "13a"]
    chance = ["--trials", "1", "--bootstrap", "2", "--metrics", "BLEU", "--format", "json"]
    raw = real_data / "news" / f"test2016.{task[-2:]}"  # what the authors' scores are of
    reference = raw if task in NEWSTEST2016 else folder / task / "reference.gz"
    main([*systems, "--reference", str(reference), *tokenize, *chance])
    found = {system["name"]: system["scores"]["BLEU"] for system in json.loads(capsys.readouterr().out)["systems"]}
    assert len(found) in (4, 5)
    if task not in ("wmt17en2de", "wmt18en2tr"):  # sacrebleu has their raw references, and this machine may not
        assert {name: f"{score['mean']:.1f}" for name, score in found.items()} == logged
    rows = "\n".join(re.findall(rf"^\| {task} \(.*", PAGE.read_text(encoding="utf-8"), re.M))
    base = found.pop("transformer")
    for name, score in found.items():
        delta, bare = (score[key] - base[key] for key in ("mean", "without_brevity_penalty"))
        assert f"| {name} | {delta:+.2f} (" in rows and f") | {bare:+.2f} | " in rows
