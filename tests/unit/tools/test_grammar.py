"""fairseq-syntax grammar: the table of tags, against loops."""

from collections import Counter

import programs

from fairseq_syntax.tools import grammar, trees
from fairseq_syntax.trees.conllu import read_conllu

run = programs.runner(grammar, "--format", "tsv", read=lambda printed: programs.tables(printed)[0])


def shares(gold, trees_of):
    """(head tag, child tag) -> percent of the head's dependents, as text; punctuation removed one step at a time."""
    arcs = Counter()
    for sentence, heads in zip(gold, trees_of, strict=True):
        for word, tag in enumerate(sentence.upos):
            head = heads[word]
            while head >= 0 and sentence.upos[head] == "PUNCT":
                head = heads[head]
            if tag != "PUNCT" and head >= 0:
                arcs[sentence.upos[head], tag] += 1
    totals = Counter()
    for (head, _), count in arcs.items():
        totals[head] += count
    return lambda head, child: f"{100 * arcs[head, child] / totals[head]:.1f}" if totals[head] else "-", arcs


def test_gold_baseline_and_model(latent, trained, run, tmp_path, capsys):
    path = f"{latent.text}.en.conllu"
    model = [latent.data, "--path", trained("sa_nmt_shared_tiny"), "--cpu"]
    model += ["--bpe", "subword_nmt", "--bpe-codes", latent.codes]
    output = tmp_path / "trees.conllu"
    assert trees.main([*map(str, [*model, "--input", path, "--output", output])]) == 0
    capsys.readouterr()
    gold = list(read_conllu(path))
    of_gold, arcs = shares(gold, [tree.heads for tree in gold])
    of_model, _ = shares(gold, [tree.heads for tree in read_conllu(output)])
    table = run(*model, "--gold", path)
    assert table[0] == ["head", "child", "gold", "L", "R", "sa_nmt_shared_tiny"]
    assert [row[:3] for row in table[1:]] == [[head, child, of_gold(head, child)] for head, child, *_ in table[1:]]
    assert [row[5] for row in table[1:]] == [of_model(head, child) for head, child, *_ in table[1:]]
    assert [arcs[row[0], row[1]] for row in table[1:]] == [count for _, count in arcs.most_common(20)]
    assert [row[2:] for row in run("--gold", path, "--predicted", output)[1:]] == [row[2:] for row in table[1:]]
    assert "words that are not punctuation" in run.said


BANK = """\
1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_
2\tdog\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\truns\t_\tVERB\t_\t_\t0\troot\t_\t_

"""


def test_rules_that_are_asked_for(run, tmp_path):
    path = tmp_path / "bank.conllu"
    path.write_text(BANK)
    assert run("--gold", path, "--rules", "NOUN:DET", "DET:NOUN", "VERB:DET") == [
        ["head", "child", "gold", "L", "R"],
        ["NOUN", "DET", "100.0", "100.0", "0.0"],
        ["DET", "NOUN", "-", "-", "100.0"],
        ["VERB", "DET", "0.0", "0.0", "-"],
    ]
    assert len(run("--gold", path, "--top", "1")) == 2
