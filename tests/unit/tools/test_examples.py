"""fairseq-syntax examples: what is listed is what is there, and a copy does what the checkout does."""

import filecmp
import os
import subprocess
from pathlib import Path

from contract.recipes import dry_run
from programs import refused

from fairseq_syntax.tools import examples


def test_every_example_is_listed_with_its_title(repository, capsys):
    assert examples.main([]) == 0
    pages = {path.parent.name: path.read_text(encoding="utf-8") for path in repository.glob("examples/*/README.md")}
    listed = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert listed.keys() == pages.keys() and len(listed) >= 15
    assert all(pages[name].startswith(f"# {title}\n") for name, title in listed.items())


def differing(found: filecmp.dircmp) -> list[str]:
    """Files of which two folders do not have the same, but for what runs leave."""
    own = [name for name in found.left_only if name not in ("__pycache__", "outputs")]
    below = [name for each in found.subdirs.values() for name in differing(each)]
    return own + found.right_only + found.diff_files + found.funny_files + below


def test_a_copy_runs_as_the_checkout_does_with_the_plug_in_that_is_installed(repository, tmp_path):
    goal = tmp_path / "mine" / "recipes"
    goal.mkdir(parents=True)  # an empty folder may be there
    assert examples.main(["--copy", str(goal)]) == 0
    assert differing(filecmp.dircmp(repository / "examples", goal, ignore=[])) == []
    assert [path.name for path in goal.parent.iterdir()] == ["recipes"]

    for words in (["recipe.sh", "train", "multi30k", "pascal"], ["quickstart.sh"]):
        done = subprocess.run(
            ["bash", goal / words[0], *words[1:]],
            cwd=tmp_path,
            env=os.environ | {"DRY_RUN": "1"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr[-1000:]
        found = [line[2:].rstrip() for line in done.stderr.splitlines() if line.startswith("+ ")]
        package = str(Path(examples.__file__).resolve().parents[1])
        expected = [line.replace("--user-dir fairseq_syntax", f"--user-dir {package}") for line in dry_run(*words)]
        # two systems at the same time may say theirs in either order
        assert sorted(line.replace(str(goal), "examples") for line in found) == sorted(expected)


def test_a_folder_with_something_in_it_is_left_alone(tmp_path, capsys):
    (tmp_path / "notes").touch()
    assert refused(examples, capsys, "--copy", tmp_path) == f"{tmp_path}: exists already; name a new folder"
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


def test_an_installation_without_examples_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(examples, "__file__", str(tmp_path / "fairseq_syntax" / "cli" / "examples.py"))
    assert "install fairseq-syntax again" in refused(examples, capsys)
