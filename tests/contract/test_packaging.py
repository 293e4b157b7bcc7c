"""What is handed out: the sdist has the checkout, the wheel works where there is none."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from contract.command_lines import REPOSITORY
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HIDDEN = (".gitignore", ".shellcheckrc", ".ci/", ".github/", ".pre-commit")


def run(*command, cwd: Path, **environment: str) -> str:
    """What a command prints; it sees neither the checkout nor the environment of the tests."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=inherited | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


@pytest.mark.parametrize("extra", ["", "dev"])
def test_what_is_pinned_is_what_is_asked_for(extra):
    """Each requirement of pyproject.toml has a pinned version that fits it, for every marker, with hashes."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned: dict[str, list[str]] = {}
    for name in ("requirements.txt", "requirements-dev.txt")[: 2 if extra else 1]:
        for line in re.sub(r"\\\n", "", (REPOSITORY / name).read_text(encoding="utf-8")).splitlines():
            requirement, *hashes = line.split(" --hash=")
            assert hashes and all(each.strip().startswith("sha256:") for each in hashes), line
            name, version = re.match(r"([^=]+)==(\S+)", requirement).groups()
            pinned.setdefault(name, []).append(version)
    asked = [Requirement(text) for text in project["optional-dependencies"][extra] if extra] if extra else []
    for each in asked or map(Requirement, project["dependencies"]):
        if each.name not in ("torch", "fairseq-syntax"):
            versions = pinned[canonicalize_name(each.name)]
            assert all(each.specifier.contains(version, prereleases=True) for version in versions), each


def tracked() -> list[str]:
    """Files of the checkout that are under version control, and not hidden."""
    if not (REPOSITORY / ".git").exists():
        pytest.skip("no checkout of git")
    names = run("git", "ls-files", "-z", cwd=REPOSITORY).split("\0")[:-1]
    return [name for name in names if not name.startswith(HIDDEN) and (REPOSITORY / name).exists()]


@pytest.fixture(scope="module")
def distributions(tmp_path_factory) -> tuple[Path, Path]:
    """An sdist of the files under version control, and the wheel built from it; in DIST, if that is given."""
    source = tmp_path_factory.mktemp("checkout")
    folder = Path(os.environ.get("DIST") or tmp_path_factory.mktemp("dist")).resolve()
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, source / name)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, cwd=source)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.mark.slow
def test_distributions_hold_what_they_should(distributions, tmp_path):
    sdist, wheel = distributions
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel, cwd=tmp_path)
    made = ("PKG-INFO", "setup.cfg", "fairseq_syntax.egg-info")
    with tarfile.open(sdist) as file:
        inside = {member.name.partition("/")[2] for member in file.getmembers() if member.isfile()}
    assert {name for name in inside if not name.startswith(made)} == set(tracked())
    with zipfile.ZipFile(wheel) as file:
        inside = {name for name in file.namelist() if ".dist-info/" not in name}
        metadata = file.read(next(name for name in file.namelist() if name.endswith("METADATA"))).decode()
    names = ("lisa", "sa-nmt", "sdatt", "tag", "transformer")
    elsewhere = tuple(f"fairseq_syntax/pretrained/agreement-{name}/" for name in names)
    package = {name for name in tracked() if name.startswith("fairseq_syntax/") and not name.startswith(elsewhere)}
    assert inside == package and "fairseq_syntax/py.typed" in inside
    assert wheel.stat().st_size <= 8_000_000
    required = re.findall(r"^Requires-Dist: ([\w-]+)(?!.*extra)", metadata, re.MULTILINE)
    assert {"torch", "sacrebleu", "subword-nmt", "stanza", "spacy", "ctranslate2", "ve-fairseq"} <= set(required)


@pytest.fixture(scope="module")
def environment(distributions, tmp_path_factory) -> Path:
    """The programs of an environment that has the wheel, and what pip installs with it, and cannot be written to."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True, with_pip=True)
    uv = shutil.which("uv")
    python = folder / "bin" / "python"
    pip = (uv, "pip", "install", "--compile-bytecode", "--python", python) if uv else (python, "-m", "pip", "install")
    run(python, "-m", "pip", "install", *os.environ.get("TORCH", "torch==2.13.0").split(), cwd=folder)
    run(*pip, distributions[1], cwd=folder, CC="false", CXX="false")
    (own,) = folder.glob("lib/python*/site-packages")
    for path in (own, *own.rglob("*")):
        if path.is_dir():
            path.chmod(0o555)
    return folder / "bin"


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 13), reason="fairseq has no wheel for this Python")
def test_the_wheel_is_enough(environment, tmp_path):
    """README's commands, in an empty environment outside the checkout."""

    def shell(commands: str) -> str:
        path = f"{environment}{os.pathsep}{os.environ['PATH']}"
        return run("bash", "-euo", "pipefail", "-c", commands, cwd=tmp_path, PATH=path, PYTHONDONTWRITEBYTECODE="1")

    directory = shell("fairseq-syntax dir").strip()
    assert Path(directory).is_relative_to(environment.parent)
    changed = shell("""fairseq-syntax whatif agreement-dasa --head 9=4 --label 9=obl --draw whatif.svg \
        --text "some teachers had found the fields in the schools ." """)
    assert "in den schulen die felder" in changed and (tmp_path / "whatif.svg").stat().st_size
    german = "die hunde sehen die katze .\n"
    assert shell("echo 'the dogs see the cat .' | fairseq-syntax translate agreement-pascal") == german
    shell("fairseq-syntax export agreement-planted --to ctranslate2 --output served")
    assert shell("echo 'the dogs see the cat .' | fairseq-syntax translate served") == german
    run(
        sys.executable,
        REPOSITORY / "examples/agreement/generate.py",
        *"--output corpus --train 60".split(),
        cwd=tmp_path,
    )
    trained = shell("""
        fairseq-syntax preprocess --source-lang en --target-lang de --joined-dictionary --trainpref corpus/train \
            --validpref corpus/valid --testpref corpus/test --destdir data-bin
        fairseq-train data-bin --user-dir "$(fairseq-syntax dir)" --arch pascal_transformer_tiny --optimizer adam \
            --lr 1e-3 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --max-tokens 1000 --max-update 2 \
            --cpu --save-dir checkpoints/pascal
    """)
    assert re.search(r"num_updates[ =|]*2\b", trained) and directory in trained and "SyntaxWarning" not in trained
    with pytest.raises(AssertionError, match="agreement-tag: not in the wheel; work in a checkout"):
        shell("echo 'the dogs see the cat .' | fairseq-syntax translate agreement-tag")
