"""Programs of ours in this process, as tests call them: what they print, and what they say when they refuse."""

from collections.abc import Callable
from types import ModuleType

import pytest


def refused(program: ModuleType, capsys, *arguments, status: int = 1) -> str:
    """The one message of a command line that a program refuses; of wrong usage (status 2), all that it says."""
    given = [str(argument) for argument in arguments]
    capsys.readouterr()
    if status == 2:
        with pytest.raises(SystemExit) as caught:
            program.main(given)
        assert caught.value.code == 2
        return capsys.readouterr().err
    assert program.main(given) == status
    output = capsys.readouterr()
    assert output.out == "" and "Traceback" not in output.err
    name = "fairseq-syntax " + program.__name__.rpartition(".")[2].replace("_", "-")
    (said,) = [line for line in output.err.splitlines() if line.startswith(f"{name}: ")]
    return said.removeprefix(f"{name}: ")


def tables(text: str) -> list[list[list[str]]]:
    """Rows of cells of each table that a verb prints with `--format tsv`."""
    return [[line.split("\t") for line in table.splitlines()] for table in text.split("\n\n")]


def runner(program: ModuleType, *always: str, read: Callable = str):
    """A fixture: function of options, and of the exit status -> what a verb prints; stderr is in `said`."""

    @pytest.fixture
    def run(capsys):
        def call(*options, status=0):
            found = program.main([*map(str, options), *always])
            printed, call.said = capsys.readouterr()
            assert found == status, call.said
            return read(printed)

        return call

    return run
