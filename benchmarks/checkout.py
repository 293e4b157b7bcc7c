"""Which commit is measured, and where its figures are kept."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"


def commit(checkout: Path = ROOT) -> str:
    """Of a checkout, with `-dirty` if files have changed, those of docs/ excepted; `unknown` outside one."""

    def git(*arguments: str) -> str:
        ended = subprocess.run(["git", *arguments], cwd=checkout, capture_output=True, text=True, check=True)
        return ended.stdout.strip()

    try:
        return git("rev-parse", "--short=10", "HEAD") + (
            "-dirty" if git("status", "--porcelain", "--", ":!docs") else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
