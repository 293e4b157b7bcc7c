"""The published outputs of PASCAL: our scores are those of the authors' logs, and the page has our differences."""

import json
import re

import pytest
from contract.command_lines import REPOSITORY

from fairseq_syntax.tools.compare import main

PAGE = REPOSITORY / "docs" / "records" / "published.md"


@pytest.mark.full
@pytest.mark.parametrize("task", ["nc11en2de", "nc11de2en", "wmt16en2de", "wmt17en2de", "wmt18en2tr", "wat18en2ja"])
def test_scores_are_those_of_the_authors_logs_and_on_the_page(real_data, capsys, task):
    folder = real_data / "pascal-outputs"
    logs = [line.split() for line in (folder / "bleu.txt").read_text(encoding="utf-8").splitlines()]
    logged = {words[1]: (words[4], words[10].rstrip(")")) for words in logs if words[0] == task}
    systems = [word for name in logged for word in ("--system", name, str(folder / task / f"{name}.gz"))]
    tokenize = ["--tokenize", "none" if task == "wat18en2ja" else "13a"]
    chance = ["--trials", "1", "--bootstrap", "2", "--metrics", "BLEU", "--format", "json"]
    main([*systems, "--reference", str(folder / task / "reference.gz"), *tokenize, *chance])
    found = {system["name"]: system["scores"]["BLEU"] for system in json.loads(capsys.readouterr().out)["systems"]}
    assert len(found) in (4, 5)
    assert {name: f"{score['mean']:.1f}" for name, score in found.items()} == {
        n: bleu for n, (bleu, _) in logged.items()
    }
    rows = re.search(rf"\| {task} .*?(?=\n\| \w|\n\n)", PAGE.read_text(encoding="utf-8"), re.S)[0]
    base = found.pop("transformer")
    for name, score in found.items():
        delta, bare = (score[key] - base[key] for key in ("mean", "without_brevity_penalty"))
        assert f"| {name} | {delta:+.2f} (" in rows and f") | {bare:+.2f} | " in rows
