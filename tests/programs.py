"""Programs of ours in this process, as tests call them: what they say when they refuse."""

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
