"""Progress of long work: a bar at a terminal, a line now and then in a log."""

import sys
import time

from fairseq_syntax import progress


def test_a_log_gets_a_line_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SECONDS", 0.1)
    monkeypatch.setattr(progress, "FIRST", 0.05)
    for _ in progress.progress_bar(range(25), desc="work"):
        time.sleep(0.02)
    said = capsys.readouterr().err
    assert "\r" not in said and said.endswith("\n")
    lines = said.splitlines()
    assert 3 <= len(lines) <= 10 and all(line.startswith("work: ") and "/25" in line for line in lines)


def test_what_is_soon_done_says_nothing_in_a_log(capsys):
    assert list(progress.progress_bar(range(3))) == [0, 1, 2]
    assert capsys.readouterr().err == ""


def test_a_terminal_has_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert list(progress.progress_bar(range(3))) == [0, 1, 2]
    assert "\r" in capsys.readouterr().err
