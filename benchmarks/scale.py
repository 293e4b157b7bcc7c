"""What corpora of growing size cost: `fairseq-syntax preprocess`, its `--check`, one pass of the loader, `parse`.

    python benchmarks/scale.py 10000 100000 --json docs/results/scale.json
    python benchmarks/scale.py 1000 10000 --only parse --json docs/results/scale.json

Sentence pairs are made up: 25 words with a tree, the rarer words in two subwords. Every step is a process of its own,
on one core. FILE keeps the figures of earlier runs; examples/experiments/results.py writes a table of all of them into
docs/speed.md.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

# No torch here: at first, a child is as large as its parent.
import numpy as np
from checkout import commit

from fairseq_syntax.files import written

WORDS = 25
TYPES, WHOLE = 60_000, 10_000  # different words, by Zipf's law; the rarer ones are cut in two
SHARDS = 4
CHUNK = 1000
TAGS = np.array(["NOUN", "VERB", "ADP", "DET", "ADJ", "PUNCT"])
LABELS = np.array(["nsubj", "obj", "case", "det", "amod", "punct", "obl", "conj"])
WMT16 = 4_500_966  # sentence pairs of WMT16 English-German
STEPS = {
    "preprocess": "`fairseq-syntax preprocess`",
    "check": "`fairseq-syntax preprocess --check`",
    "loader": "one pass of the loader",
    "parse": f"`fairseq-syntax parse`, {SHARDS} shards",
}
BOUNDED = {("parse", "MB")}  # the parser keeps unseen words, up to a limit
FILES = {
    "text": "text, both languages",
    "trees": "trees, CoNLL-U",
    "data": "data directory",
    "distances": "of it distances, which `--no-distances` leaves out",
}


def spelled(rank: int, letters: str) -> str:
    """A word of letters for each number."""
    word = ""
    while rank >= 0:
        rank, letter = divmod(rank, len(letters))
        word += letters[letter]
        rank -= 1
    return word


def make_corpus(folder: Path, pairs: int) -> None:
    """Write train.en, train.de, train.en.conllu, and train.words, whose words are whole."""
    rng = np.random.default_rng(1)
    chances = np.cumsum(1 / np.arange(1, TYPES + 1))
    whole = [[spelled(rank, letters) for rank in range(TYPES)] for letters in ("etaoinshrdlu", "enisratdhulc")]
    cut = [[w if rank < WHOLE else f"{w[:2]}@@ {w[2:]}" for rank, w in enumerate(words)] for words in whole]
    names = ("train.en", "train.de", "train.en.conllu", "train.words")
    files = [open(folder / name, "w", encoding="utf-8") for name in names]
    for start in range(0, pairs, CHUNK):
        shape = (min(CHUNK, pairs - start), WORDS)
        ranks = [np.searchsorted(chances, rng.random(shape) * chances[-1]).tolist() for _ in whole]
        for file, words, sentences in zip(files, cut, ranks, strict=False):
            file.writelines(" ".join([words[rank] for rank in sentence]) + "\n" for sentence in sentences)
        forms = [[whole[0][rank] for rank in sentence] for sentence in ranks[0]]
        files[3].writelines(" ".join(words) + "\n" for words in forms)
        tags = [rng.choice(names, shape).tolist() for names in (TAGS, LABELS)]
        for columns in zip(forms, random_heads(rng, shape).tolist(), *tags, strict=True):
            rows = zip(range(1, WORDS + 1), *columns, strict=True)
            files[2].write("".join(f"{i}\t{w}\t_\t{u}\t_\t_\t{h}\t{d}\t_\t_\n" for i, w, h, u, d in rows) + "\n")
    for file in files:
        file.close()


def random_heads(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """HEAD of every word, in trees whose arcs are mostly short: each word hangs on one that is nearer to the root."""
    word, root = np.arange(shape[1]), rng.integers(shape[1], size=(shape[0], 1))
    way = root - word
    heads = word + np.sign(way) * (1 + (rng.random(shape) ** 3 * np.abs(way)).astype(int))
    return np.where(way == 0, 0, heads + 1)


def measured(command: list) -> dict[str, float]:
    """Run a command; CPU and wall-clock seconds, and MiB: of its own, and with the files that it has mapped."""
    start, own = time.perf_counter(), 0
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log)
        while (done := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            status = Path(f"/proc/{process.pid}/status").read_text()
            own = max([own, *(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))])
            time.sleep(0.1)
        process.returncode = os.waitstatus_to_exitcode(done[1])
        if process.returncode:
            log.seek(0)
            sys.exit(log.read().decode()[-2000:])
    usage = done[2]
    return {
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "wall_seconds": round(time.perf_counter() - start, 2),
        "memory_mib": round(own / 1024),
        "with_files_mib": round(usage.ru_maxrss / 1024),
    }


def read_all(data: str) -> None:
    """One pass over the batches of a model that reads parents, distances, labels and tags."""
    import torch
    from fairseq import options, tasks

    import fairseq_syntax

    fairseq_syntax.register()

    torch.set_num_threads(1)
    parser = options.get_training_parser(default_task="syntax_translation")
    args = options.parse_args_and_arch(parser, [data, "--task", "syntax_translation", "--arch", "dasa_transformer"])
    task = tasks.setup_task(args)
    task.required_inputs |= {"parents", "distances", "deprels", "upos"}
    task.load_dataset("train")
    batches = task.get_batch_iterator(task.dataset("train"), max_tokens=4096, num_workers=0)
    sentences = sum(batch["nsentences"] for batch in batches.next_epoch_itr(shuffle=True))
    assert sentences == len(task.dataset("train"))


def size(paths) -> int:
    """Bytes of files."""
    return sum(path.stat().st_size for path in paths)


def measure(pairs: int, steps: list[str], folder: Path) -> dict:
    """Figures of each step, by name, and bytes on disk."""
    make_corpus(folder, pairs)
    program = [sys.executable, "-m", "fairseq_syntax"]
    data, found, bytes_ = folder / "data-bin", {}, {"text": size([folder / "train.en", folder / "train.de"])}
    bytes_["trees"] = size([folder / "train.en.conllu"])
    languages = ["--source-lang", "en", "--target-lang", "de", "--joined-dictionary"]
    commands = {
        "preprocess": [*program, "preprocess", *languages, "--trainpref", folder / "train", "--destdir", data],
        "check": [*program, "preprocess", "--check", data],
        "loader": [sys.executable, __file__, "--read", data],
    }
    for name, command in commands.items():
        if name in steps:
            found[name] = measured(command)
    if data.exists():
        bytes_["data"] = size(data.iterdir())
        bytes_["distances"] = size(data.glob("*.distances.*"))
    if "parse" in steps:
        given = ["--input", folder / "train.words", "--parser", "checkpoint", "--parser-model", "agreement-parser"]
        shards = [
            measured([*program, "parse", *given, "--shard", f"{i}/{SHARDS}", "--output", folder / f"{i}.conllu"])
            for i in range(SHARDS)
        ]
        seconds = {name: round(sum(shard[name] for shard in shards), 2) for name in ("cpu_seconds", "wall_seconds")}
        found["parse"] = seconds | {name: max(s[name] for s in shards) for name in ("memory_mib", "with_files_mib")}
        assert sum(sum(line == "\n" for line in open(folder / f"{i}.conllu")) for i in range(SHARDS)) == pairs
    return {"steps": found, "bytes": bytes_}


def shown(value: float, unit: str) -> str:
    """A figure in a unit that suits it."""
    sizes = {"s": ((3600, "h"), (60, "min")), "MB": ((1000, "GB"),)}[unit]
    factor, name = next(((factor, name) for factor, name in sizes if value >= factor), (1, unit))
    return f"{value / factor:.2g} {name}" if value / factor < 10 else f"{value / factor:.0f} {name}"


def row(step: str, title: str, figures: dict[int, float], sizes: list[int], unit: str) -> str:
    """A row of the table; the last cell is on the line through the figures of the two largest sizes."""
    cells = [shown(figures[pairs], unit) if pairs in figures else "" for pairs in sizes]
    known = sorted(figures)[-2:]
    if len(known) == 2 and (step, unit) not in BOUNDED:
        slope = (figures[known[1]] - figures[known[0]]) / (known[1] - known[0])
        cells.append(shown(figures[known[1]] + max(slope, 0) * (WMT16 - known[1]), unit))
    else:
        cells.append("")
    return f"| {title} | {' | '.join(cells)} |"


def table(record: dict) -> str:
    """Markdown of a record."""
    runs = {int(pairs): run for pairs, run in record["runs"].items()}
    sizes = sorted(runs)
    rows = [f"| sentence pairs | {' | '.join(f'{pairs:,}' for pairs in sizes)} | {WMT16:,} (WMT16), extrapolated |"]
    rows.append("|---" * (len(sizes) + 2) + "|")
    for step, title in STEPS.items():
        for name, what, unit in (("cpu_seconds", "CPU", "s"), ("memory_mib", "memory", "MB")):
            figures = {pairs: run["steps"][step][name] for pairs, run in runs.items() if step in run["steps"]}
            if unit == "MB":
                figures = {pairs: value * 2**20 / 1e6 for pairs, value in figures.items()}
            rows.append(row(step, f"{title}: {what}", figures, sizes, unit))
    for name, title in FILES.items():
        figures = {pairs: run["bytes"][name] / 1e6 for pairs, run in runs.items() if name in run["bytes"]}
        rows.append(row(name, f"on disk: {title}", figures, sizes, "MB"))
    made = sorted({stamp for run in runs.values() for stamp in run["made"]})
    return f"{'; '.join(made)}.\n\n" + "\n".join(rows)


def main(arguments: list[str] | None = None) -> None:
    """Measure, keep, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=int, nargs="*", help="sizes of corpora, in sentence pairs")
    parser.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS), help="steps (all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="add the figures to this file")
    parser.add_argument("--read", metavar="DATA", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.read:
        read_all(args.read)
        return
    record = json.loads(args.json.read_text()) if args.json and args.json.exists() else {"runs": {}}
    for pairs in args.pairs:
        with tempfile.TemporaryDirectory() as folder:
            run = measure(pairs, args.only, Path(folder))
        old = record["runs"].setdefault(str(pairs), {"steps": {}, "bytes": {}, "made": []})
        for part, figures in run.items():
            old[part] |= figures
        machine = f"one core ({platform.machine()}), Python {platform.python_version()}"
        stamp = f"{date.today()}, commit {commit()}, {machine}"
        # some steps may be older than others
        old["made"] = sorted({stamp, *old["made"]}) if set(args.only) < set(STEPS) else [stamp]
        if args.json:
            with written(str(args.json)) as file:
                file.write(json.dumps(record, indent=1) + "\n")
    print(table(record))


if __name__ == "__main__":
    main()
