"""Print what published.sh has found: python table.py FOLDER

Last: the largest standard deviation of trainings, beyond that of sentences, with which one each differ significantly.
"""

import json
import sys
from pathlib import Path

print("| task | system | Δ BLEU | Δ no BP | Δ chrF | length | p, Holm | SD |\n| --- | --- " + "| ---: " * 6 + "|")
for path in sorted(Path(sys.argv[1]).glob("*.json")):
    found = json.loads(path.read_text(encoding="utf8"))
    of = {system["name"]: system["scores"]["BLEU"] for system in found["systems"]}
    base = of.pop("transformer")
    tests = {(test["metric"], test["system"]): test for test in found["tests"]}
    for name, score in of.items():
        test, chrf = (tests[metric, name] for metric in ("BLEU", "chrF"))
        low, high = test["interval"]
        largest = max(0, ((low + high) / 3.92) ** 2 - ((high - low) / 3.92) ** 2) ** 0.5 / 2**0.5
        bare = score["without_brevity_penalty"] - base["without_brevity_penalty"]
        print(
            f"| {path.stem} ({base['mean']:.1f}, {base['length_ratio']:.3f}) | {name} | {test['delta']:+.2f} "
            f"({low:+.2f} to {high:+.2f}) | {bare:+.2f} | {chrf['delta']:+.2f} | {score['length_ratio']:.3f} "
            f"| {test['holm']['randomization']:.4f} | {largest:.2f} |"
        )
