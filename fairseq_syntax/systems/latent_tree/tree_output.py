"""The trees of translations as lines of text, like those that fairseq prints; and the file that they go to."""

import json
import os
import sys
from pathlib import Path

STDOUT = "-"


def tree_lines(number: int, hypothesis: dict) -> str:
    """Three lines about a translation: trees of source and target in brackets, and their attention as JSON.

    `hypothesis` has "src_tree", "tgt_tree" (str), "src_spans", "tgt_spans" (lists of (start, end)) and "node_attention"
    (J, I), see `generator.TreeGenerator`; and, if it is known, "src_capped" and "tgt_capped" (bool).
    """
    attention = {
        "source_spans": [list(span) for span in hypothesis["src_spans"]],
        "target_spans": [list(span) for span in hypothesis["tgt_spans"]],
        # rounded as float64: float32 would be written with all its digits
        "attention": hypothesis["node_attention"].double().cpu().numpy().round(4).tolist(),
    }
    for name, key in (("src_capped", "source_capped"), ("tgt_capped", "target_capped")):
        if name in hypothesis:
            attention[key] = bool(hypothesis[name])
    fields = {"TS": hypothesis["src_tree"], "TT": hypothesis["tgt_tree"], "TA": json.dumps(attention)}
    return "".join(f"{name}-{number}\t{value}\n" for name, value in fields.items())


class TreeFile:
    """A file that has its name only while all sentences that were announced are in it; else it ends in `.part`.

    So whatever stops the program, a file with the name is whole. It replaces an older one then, not before. `-` is
    stdout.
    """

    def __init__(self, path: str):
        if Path(path).is_dir():
            raise IsADirectoryError(f"--rnng-tree-output {path}: is a folder; name a file")
        self.path = path
        self.missing = 0
        self._file = None
        self._whole = False

    @property
    def _part(self) -> str:
        return f"{self.path}.part"

    def expect(self, sentences: int) -> None:
        """Announce sentences; those that have been announced before and are still missing will not come."""
        self.missing = sentences
        if self.path == STDOUT or not sentences:
            return
        if self._file is None:
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self._part, "w", encoding="utf-8", newline="\n")
        elif self._whole:
            # the open file goes on under either name
            os.replace(self.path, self._part)
            self._whole = False

    def write(self, lines: str, sentences: int) -> None:
        """Add the lines of sentences that were announced."""
        file = sys.stdout if self.path == STDOUT else self._file
        file.write(lines)
        file.flush()
        self.missing -= sentences
        if self._file is not None and not self.missing:
            os.replace(self._part, self.path)
            self._whole = True
