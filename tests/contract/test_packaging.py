"""What is handed out: the sdist has the checkout, the wheel works where there is none."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from contract.command_lines import REPOSITORY

PROGRAMS = ("fairseq-preprocess", "fairseq-train", "fairseq-generate")
HIDDEN = (".gitignore", ".shellcheckrc", ".ci/", ".github/")


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


def test_what_the_workflow_runs_is_in_the_makefile():
    workflow = (REPOSITORY / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    commands = re.findall(r"- run: (.*)", workflow)
    assert commands and {command.removeprefix("make ") for command in commands} <= set(phony)


def tracked() -> list[str]:
    """Files of the checkout that are under version control, and not hidden."""
    if not (REPOSITORY / ".git").exists():
        pytest.skip("no checkout of git")
    names = run("git", "ls-files", "-z", cwd=REPOSITORY).split("\0")[:-1]
    return [name for name in names if not name.startswith(HIDDEN) and (REPOSITORY / name).exists()]


@pytest.fixture(scope="module")
def distributions(tmp_path_factory) -> tuple[Path, Path]:
    """An sdist of the files under version control, and the wheel that is built from the sdist."""
    source, folder = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("dist")
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
    package = {name for name in tracked() if name.startswith("fairseq_syntax/")}
    examples = {f"fairseq_syntax/{name}" for name in tracked() if name.startswith("examples/")}
    assert inside == package | examples and "fairseq_syntax/py.typed" in inside
    required = re.findall(r"^Requires-Dist: ([\w-]+)(?!.*extra)", metadata, re.MULTILINE)
    assert {"torch", "sacrebleu", "subword-nmt", "stanza"} <= set(required)
    assert {"tensorboard", "wandb", "spacy", "completion"} <= set(re.findall(r"^Provides-Extra: (.*)$", metadata, re.M))
    assert not re.search(r"^(Requires-Dist|Provides-Extra): fairseq(?!-syntax)", metadata, re.MULTILINE)


@pytest.fixture(scope="module")
def environment(distributions, tmp_path_factory) -> Path:
    """The programs of a new environment with the wheel; large packages, fairseq among them, are those of this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    (own,) = folder.glob("lib/python*/site-packages")
    large = [path for path in sys.path if Path(path).name == "site-packages"]
    (own / "large.pth").write_text("\n".join(large) + "\n", encoding="utf-8")
    install = ("--no-deps", "--no-index", "--ignore-installed", distributions[1])
    run(sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", *install, cwd=folder)
    for name in PROGRAMS:  # as pip would write them for this Python
        text = (Path(sys.executable).parent / name).read_text(encoding="utf-8")
        (folder / "bin" / name).write_text(re.sub(r"\A#!.*", f"#!{folder}/bin/python", text), encoding="utf-8")
        (folder / "bin" / name).chmod(0o755)
    return folder / "bin"


@pytest.mark.slow
def test_the_wheel_trains_and_translates_outside_the_checkout(environment, tmp_path):
    def shell(commands: str) -> str:
        path = f"{environment}{os.pathsep}{os.environ['PATH']}"
        return run("bash", "-euo", "pipefail", "-c", commands, cwd=tmp_path, PATH=path)

    directory = shell("fairseq-syntax dir").strip()
    assert Path(directory).is_relative_to(environment.parent)
    shell("""
        fairseq-syntax examples --copy mine
        python mine/agreement/generate.py --output corpus --train 60 --valid 10 --test 10 --challenge 0
        fairseq-syntax preprocess --source-lang en --target-lang de --joined-dictionary --trainpref corpus/train \
            --validpref corpus/valid --testpref corpus/test --destdir data-bin
    """)
    trained = shell("""
        fairseq-train data-bin --user-dir "$(fairseq-syntax dir)" --arch pascal_transformer_tiny --optimizer adam \
            --lr 1e-3 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --max-tokens 1000 --max-update 3 \
            --cpu --save-dir checkpoints/pascal
    """)
    assert re.search(r"num_updates[ =|]*3\b", trained) and directory in trained
    generated = shell("""
        fairseq-generate data-bin --user-dir "$(fairseq-syntax dir)" --path checkpoints/pascal/checkpoint_best.pt \
            --beam 5 --cpu
    """)
    assert len(re.findall(r"^H-\d+\t", generated, re.MULTILINE)) == 10
    assert f"--user-dir {directory} " in shell("DRY_RUN=1 bash mine/recipe.sh train multi30k pascal")
