"""How many small faults the tests find: mutants of lines that two checkouts share, so that their tests can be compared.

    git worktree add ../older COMMIT
    python tests/mutants.py draw ../older . --number 40 --seed 1 > mutants.json
    python tests/mutants.py run mutants.json ../older      # and then: run mutants.json .

A mutant changes one operator, boundary, number or truth value, or drops one statement, of systems/, trees/, data/ or
evaluate/. It is killed if the tests of its room fail, or those of all architectures, families and golden checkpoints.
Files are changed in place and put back; let nobody else work in that checkout.
"""

import argparse
import ast
import io
import json
import os
import random
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOMS = ("systems", "trees", "data", "evaluate")
SWAPS = {
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "+", "/": "*"},
    **{"//": "*", "%": "+", "&": "|", "|": "&", "and": "or", "or": "and", "True": "False", "False": "True"},
    **{"is": "is not", "in": "not in", "+=": "-=", "-=": "+=", "min": "max", "max": "min"},
}
SHARED = ["golden/test_golden.py", "contract/test_architectures.py", "integration/test_families.py"]


def has_effect(node: ast.stmt, function: str) -> bool:
    """Whether to drop a statement: not one that names a value, whose absence any test would see."""
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Subscript) for target in node.targets)
    return isinstance(node, ast.AugAssign | ast.Expr) and function != "__init__"


def is_python(line: str) -> bool:
    try:
        ast.parse(line + (" pass" if line.endswith(":") else ""))
    except SyntaxError:
        return False
    return True


def statements(checkout: Path) -> dict[tuple[str, str], tuple[Path, int, bool]]:
    """(function, line) -> file, number of the line from 0, and whether it is a statement of its own; each but once."""
    places, times = {}, Counter()
    for path in sorted(file for room in ROOMS for file in (checkout / "fairseq_syntax" / room).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for function in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)):
            inside = [node for node in ast.walk(function) if isinstance(node, ast.stmt) and node is not function]
            for node in (node for node in inside if node.lineno == node.end_lineno):
                docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
                if docstring or isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.Pass):
                    continue
                key = function.name, lines[node.lineno - 1].strip()
                times[key] += 1
                places[key] = path, node.lineno - 1, has_effect(node, function.name)
    return {key: place for key, place in places.items() if times[key] == 1}


def changes(line: str, alone: bool) -> list[str]:
    """The line with one token changed, in all ways; or dropped."""
    changed = ["pass"] if alone else []
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(line).readline))
    except (tokenize.TokenError, IndentationError):
        return changed
    for token in tokens:
        new = SWAPS.get(token.string)
        if token.type == tokenize.NUMBER and token.string.isdigit():
            new = str(int(token.string) + 1)
        if new and token.type in (tokenize.OP, tokenize.NAME, tokenize.NUMBER):
            changed.append(line[: token.start[1]] + new + line[token.end[1] :])
    return [line for line in changed if is_python(line)]


def draw(older: Path, newer: Path, number: int, seed: int) -> list[dict[str, str]]:
    """Mutants of lines that both have, one a line."""
    there = statements(newer)
    rng = random.Random(seed)
    keys = sorted(key for key in statements(older).keys() & there.keys() if changes(key[1], there[key][2]))
    return [
        {"function": key[0], "line": key[1], "mutant": rng.choice(changes(key[1], there[key][2]))}
        for key in rng.sample(keys, min(number, len(keys)))
    ]


def killed(checkout: Path, path: Path) -> bool:
    """Whether a test fails."""
    parts = path.relative_to(checkout / "fairseq_syntax").parts
    room = Path("unit", *(parts[:2] if parts[0] == "systems" else parts[:1]))
    own = [str(room)] if (checkout / "tests" / room).is_dir() else ["unit/systems"]
    environment = dict(os.environ, PYTHONPATH=str(checkout), OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    for tests in (own, SHARED):
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        command += [f"tests/{name}" for name in tests]
        try:
            done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, timeout=900)
        except subprocess.TimeoutExpired:
            return True
        if done.returncode:
            return True
    return False


def run(mutants: list[dict[str, str]], checkout: Path) -> None:
    """Print for each mutant whether it was killed."""
    places, total = statements(checkout), Counter()
    for mutant in mutants:
        place = places.get((mutant["function"], mutant["line"]))
        if place is None:
            continue
        path, number, _ = place
        text = path.read_bytes()
        lines = text.decode().split("\n")
        lines[number] = lines[number].replace(mutant["line"], mutant["mutant"])
        try:
            path.write_text("\n".join(lines), encoding="utf-8")
            result = "killed" if killed(checkout, path) else "survived"
        finally:
            path.write_bytes(text)
        total[result] += 1
        where = f"{path.relative_to(checkout)}:{number + 1}"
        print(result, where, f"{mutant['line']}  ->  {mutant['mutant']}", sep="\t", flush=True)
    print(dict(total))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    drawing = verbs.add_parser("draw")
    drawing.add_argument("older", type=Path)
    drawing.add_argument("newer", type=Path)
    drawing.add_argument("--number", type=int, default=40)
    drawing.add_argument("--seed", type=int, default=1)
    running = verbs.add_parser("run")
    running.add_argument("mutants", type=Path)
    running.add_argument("checkout", type=Path)
    args = parser.parse_args()
    if args.verb == "draw":
        json.dump(draw(args.older.resolve(), args.newer.resolve(), args.number, args.seed), sys.stdout, indent=1)
    else:
        run(json.loads(args.mutants.read_text(encoding="utf-8")), args.checkout.resolve())
