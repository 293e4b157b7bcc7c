"""Programs import nothing of the current folder, where a file of a stranger, or one's own, may have any name."""

import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_syntax.experiment.run import call

BIN = Path(sys.executable).parent
NAMES = "sacrebleu torch spacy numpy stanza tqdm en fairseq fairseq_cli fairseq_syntax re".split()
DATA = ["data-bin", "--user-dir", str(Path(__file__).resolve().parents[2] / "fairseq_syntax")]


@pytest.fixture
def shadows(tmp_path, monkeypatch) -> Path:
    """The current folder: modules and packages that leave a file when they are imported."""
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        for path in (tmp_path / f"{name}.py", tmp_path / name / "__init__.py"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n")
    return tmp_path


def ran(folder: Path) -> str:
    return (folder / "ran").read_text() if (folder / "ran").exists() else ""


def test_verbs_and_programs_of_fairseq(shadows):
    lines = [["fairseq-syntax", "parse", "--parser", "spacy", "--parser-model", "en", "--input", "re.py"]]
    lines += [["fairseq-syntax", "compare", "--system", "a", "re.py", "--reference", "re.py"]]
    # all verbs share an entry point, and all programs of fairseq are as this
    lines += [["fairseq-train", *DATA, "--help"]]
    for program, *arguments in lines:
        done = subprocess.run([BIN / program, *arguments], capture_output=True, text=True)
        assert not ran(shadows), f"{program} {arguments}: {done.stderr}"


def test_what_an_experiment_starts(shadows):
    assert call([sys.executable, "-c", "import sacrebleu, re"], subprocess.DEVNULL, None) == 0 and not ran(shadows)
    subprocess.run([sys.executable, "-c", "import sacrebleu"], check=False)  # as it would be without
    assert ran(shadows) == "sacrebleu"
