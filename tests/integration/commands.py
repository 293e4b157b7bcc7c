"""fairseq's commands for the tests: in this process, which saves seconds a run, or in processes of their own."""

import contextlib
import importlib
import io
import json
import logging
import multiprocessing.connection
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from integration import forked
from seeds import seed

import fairseq_syntax

fairseq_syntax.register()
PACKAGE = Path(fairseq_syntax.__file__).parent
KILLED = Path(__file__).with_name("killed_training.py")

_MODULES = {
    "fairseq-train": "fairseq_cli.train",
    "fairseq-generate": "fairseq_cli.generate",
    "fairseq-interactive": "fairseq_cli.interactive",
    "fairseq-validate": "fairseq_cli.validate",
}

# small batches, one thread, one process, every update logged
TRAINING = [
    *("--cpu", "--distributed-world-size", "1", "--optimizer", "adam", "--lr", "5e-3", "--max-tokens", "1500"),
    *("--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1"),
    *("--seed", str(seed(1)), "--num-workers", "0"),
    *("--log-format", "json", "--log-interval", "1", "--disable-validation", "--no-epoch-checkpoints"),
]
# short hypotheses: a model of few updates would go on for 200 tokens. Not relative to the source: fairseq takes the
# longest sentence of the batch, so that translations would depend on their neighbours
DECODING = ["--cpu", "--beam", "3", "--max-len-a", "0", "--max-len-b", "25"]

TEST_SENTENCES = 203
TRAIN_SENTENCES = 403

# architecture -> criterion beyond the default, sharing of embeddings
OPTIONS = {
    "pascal_transformer_tiny": ["--share-all-embeddings"],
    "lisa_transformer_tiny": [*("--share-all-embeddings", "--criterion", "label_smoothed_cross_entropy_with_heads")],
    "planted_transformer_tiny": [
        *("--share-all-embeddings", "--criterion", "label_smoothed_cross_entropy_with_planted_heads")
    ],
    "tag_transformer_tiny": ["--share-all-embeddings"],
    "transformer_tiny": ["--share-all-embeddings"],
    "nmt_lstm_tiny": [],
    "sa_nmt_tiny": ["--share-all-embeddings"],
    "sa_nmt_shared_tiny": [],
    "sa_nmt_1set_tiny": ["--decoder-hidden-size", "48"],
    "sdatt_tiny": ["--sdatt-n", "2"],
    "dasa_transformer_tiny": ["--share-all-embeddings"],
    "lgp_tiny": [],
}


def run(command: str, *arguments) -> str:
    """Run a command of fairseq in this process, with `--user-dir`; returns what it printed and logged.

    Whatever the command changes in the process is put back, so that every call starts as in a fresh process.
    """
    from fairseq import checkpoint_utils
    from fairseq_cli.train import should_stop_early

    main = importlib.import_module(_MODULES[command]).cli_main
    # by default, batches come from a process of their own, whose end takes seconds
    arguments = [command, "--num-workers", "0", *map(str, arguments), "--user-dir", str(PACKAGE)]
    output = io.StringIO()
    root = logging.getLogger()
    argv, handlers, level = sys.argv, list(root.handlers), root.level
    # fairseq uses and seeds the global generators
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    threads = torch.get_num_threads()
    sys.argv = arguments
    root.handlers = [logging.StreamHandler(output)]
    root.setLevel(logging.INFO)
    torch.set_num_threads(1)
    for function in (checkpoint_utils.save_checkpoint, should_stop_early):
        vars(function).clear()
    try:
        with contextlib.redirect_stdout(output):
            main()
    finally:
        sys.argv = argv
        root.handlers = handlers
        root.setLevel(level)
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        torch.set_rng_state(states[2])
        torch.set_num_threads(threads)
    return output.getvalue()


def run_process(*command, cwd: Path, status: int = 0, **environment: str) -> str:
    """Run a command in a process of its own; returns its output, or fails with the end of it.

    fairseq's programs and files of Python start with what `forked.py` has imported.

    Args:
        cwd: directory to run in.
        status: exit status to expect; negative for a signal.
        environment: variables to set; those that Python reads at its start act on other commands only.
    """
    env = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", **environment}
    program, *arguments = (str(part) for part in command)
    # a file, not a pipe: workers that outlive a killed process would hold the pipe open
    with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as output:
        if program.startswith("fairseq-") or program.endswith(".py"):
            process = forked.start(shutil.which(program) or program, arguments, cwd, env, output.name)
            wait = process.join
        else:
            streams = {"stdout": output, "stderr": subprocess.STDOUT}
            process = subprocess.Popen([program, *arguments], cwd=cwd, env=env, start_new_session=True, **streams)
            wait = process.wait
        try:
            wait(300)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        found = process.returncode if isinstance(process, subprocess.Popen) else process.exitcode
        output.seek(0)
        text = output.read()
    lines = [line[:300] for line in text.splitlines()]
    assert found == status, "\n".join([f"exit status {found}", *lines[-30:]])
    return text


def train(data: Path, directory: Path, arch: str, *options) -> str:
    """Train in this process; returns the log. Later options win over `TRAINING`."""
    return run("fairseq-train", data, "--arch", arch, *TRAINING, "--save-dir", directory, *options)


def train_in_two(folder: Path, *arguments) -> None:
    """fairseq-train in two forks of this process, whose models are wrapped as on GPUs: by PyTorch, fairseq's default.

    `launch.sh`, which is what runs without GPUs, has another wrapper, because fairseq tells PyTorch's the number of
    the GPU.

    Args:
        folder: where the processes meet.
        arguments: of fairseq-train.
    """
    meeting = folder / "meeting"
    meeting.unlink(missing_ok=True)
    options = ["--cpu", "--distributed-world-size", 2, "--distributed-init-method", f"file://{meeting}"]
    options += ["--distributed-no-spawn", "--distributed-backend", "gloo", "--distributed-rank"]

    def work(rank: int) -> None:
        from fairseq.models import distributed_fairseq_model

        wrapper = distributed_fairseq_model.DistributedDataParallel

        def wrap(device_ids, output_device, **given):
            return wrapper(**given)

        distributed_fairseq_model.DistributedDataParallel = wrap
        run("fairseq-train", *arguments, *options, rank)

    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=work, args=(rank,)) for rank in range(2)]
    try:
        for worker in workers:
            worker.start()
        # where one has failed, the other one waits for it
        while (alive := [worker for worker in workers if worker.is_alive()]) and not any(w.exitcode for w in workers):
            if not multiprocessing.connection.wait([worker.sentinel for worker in alive], 300):
                break
        assert [worker.exitcode for worker in workers] == [0, 0]
    finally:
        for worker in workers:
            worker.kill()
            worker.join()


def scatter(checkpoint: Path, output: Path | None = None, number: int = 1, gain: float = 1.5) -> Path:
    """Set the matrices of a checkpoint to random numbers: other inputs get other outputs, whatever it has learned.

    NumPy's random numbers are the same on every processor. Rows of zeros stay (padding), and so does all else.

    Args:
        checkpoint: file to read.
        output: file to write; the same by default.
        number: seed, which `--seed-shift` shifts.
        gain: size of a matrix times a vector, relative to the vector.
    """
    state = torch.load(checkpoint, weights_only=True)
    random_numbers, done = np.random.default_rng(seed(number)), set()
    for value in state["model"].values():
        if value.dim() < 2 or not value.is_floating_point() or value.data_ptr() in done:
            continue
        done.add(value.data_ptr())
        noise = torch.from_numpy(random_numbers.standard_normal(value.shape)) * gain * value[0].numel() ** -0.5
        value.copy_(noise.flatten(1).where(value.flatten(1).any(1, keepdim=True), 0.0).view_as(value))
    torch.save(state, output or checkpoint)
    return output or checkpoint


def generate(data: Path, checkpoint, *options) -> dict[int, tuple[float, str]]:
    """Translate binarized data in this process; see `hypotheses`."""
    return hypotheses(run("fairseq-generate", data, "--path", checkpoint, *DECODING, *options))


def interactive(data: Path, checkpoint, text: Path, *options) -> dict[int, tuple[float, str]]:
    """Translate raw text in this process; see `hypotheses`."""
    return hypotheses(run("fairseq-interactive", data, "--path", checkpoint, "--input", text, *DECODING, *options))


def hypotheses(output: str) -> dict[int, tuple[float, str]]:
    """Sentence number -> (score in bits, best hypothesis), from the output of generate or interactive."""
    found = re.findall(r"^H-(\d+)\t(\S+)\t(.*)$", output, re.MULTILINE)
    result = {int(number): (float(score), text) for number, score, text in found}
    assert len(result) == len(found), "a sentence was translated twice"
    return result


def records(log: str) -> list[dict]:
    """The JSON records of a training log, without times."""
    volatile = re.compile(r"(train_|valid_)?(wps|ups|wall|train_wall|gb_free|oom)$")
    result = []
    for line in log.splitlines():
        start = line.find('{"epoch"')
        if start >= 0:
            record = json.loads(line[start:])
            result.append({key: value for key, value in record.items() if not volatile.fullmatch(key)})
    return result


def parameters(checkpoint: Path) -> dict[str, torch.Tensor]:
    """The parameters in a checkpoint."""
    return torch.load(checkpoint, map_location="cpu", weights_only=True)["model"]


def assert_same_hypotheses(actual: dict, expected: dict) -> None:
    """Compare strings exactly, scores to a tolerance."""
    assert {number: text for number, (_, text) in actual.items()} == {n: text for n, (_, text) in expected.items()}
    scores = [[found[number][0] for number in sorted(expected)] for found in (actual, expected)]
    np.testing.assert_allclose(*scores, atol=1e-4, rtol=0)


def cut(line: str) -> str:
    """Cut words into pieces of at most four letters, with @@ as subword-nmt does."""
    words = [[word[i : i + 4] for i in range(0, len(word), 4)] for word in line.split()]
    return " ".join("@@ ".join(pieces) for pieces in words)


def binarize(prefixes: dict[str, Path], destination: Path, *options) -> Path:
    """Run fairseq-syntax preprocess in this process. `prefixes`: train, valid, test -> prefix."""
    splits = [part for split, prefix in prefixes.items() for part in (f"--{split}pref", str(prefix))]
    languages = ["--source-lang", "en", "--target-lang", "de"]
    from fairseq_syntax.tools import preprocess

    preprocess.main([*languages, *splits, "--destdir", str(destination), *map(str, options)])
    return destination
