"""How far the order of words differs between English and other languages: Kendall's tau of the words that are aligned.

    python examples/experiments/order.py FOLDER tr ja de ... > docs/results/order.json

FOLDER has train.en and train.LANGUAGE, plain or .gz. Links are those that eflomal finds in both directions
(pip install eflomal, which compiles). 1: links never cross, 0: half of their pairs do; the mean over sentences.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from raw_text import tokenized
from scipy.stats import kendalltau

from fairseq_syntax.trees.text import open_text


def words(prefix: Path, language: str) -> list[str]:
    """Lower-cased lines in tokens."""
    path = next(path for path in (Path(f"{prefix}.{language}"), Path(f"{prefix}.{language}.gz")) if path.exists())
    with open_text(path) as lines:
        return [line.lower() for line in tokenized(lines, language)]


def links(sources: list[str], targets: list[str]) -> list[list[tuple[int, int]]]:
    """(place in the source, place in the target) of the words of each sentence that are aligned in both directions."""
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder, name) for name in "stfr"}
        for name, lines in (("s", sources), ("t", targets)):
            files[name].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        options = [part for name, path in files.items() for part in (f"-{name}", path)]
        subprocess.run(["eflomal-align", "--overwrite", *options], check=True, stderr=subprocess.DEVNULL)
        forward, reverse = (files[name].read_text().splitlines() for name in "fr")
    both = (set(one.split()) & set(other.split()) for one, other in zip(forward, reverse, strict=True))
    return [sorted(tuple(map(int, link.split("-"))) for link in sentence) for sentence in both]


def main(folder: str, languages: list[str]) -> None:
    sources, result = words(Path(folder, "train"), "en"), {}
    for language in languages:
        pairs = [sentence for sentence in links(sources, words(Path(folder, "train"), language)) if len(sentence) > 2]
        taus = [kendalltau(*zip(*sentence, strict=True)).statistic for sentence in pairs]
        result[language] = {"tau": round(float(sum(taus)) / len(taus), 3), "sentences": len(taus)}
    json.dump(result, sys.stdout, indent=1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
