"""Programs in processes of their own that have torch and fairseq from the start, which saves seconds a process.

The server that forks them has not imported fairseq_syntax, nor fairseq's programs, which set up the logging.
"""

import multiprocessing
import os
import runpy
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["torch", "fairseq.trainer", "fairseq.hub_utils", "fairseq.dataclass.initialize"])


def _run(program: str, arguments: list[str], cwd: Path, environment: dict[str, str], output: str) -> None:
    import torch

    multiprocessing.set_start_method("fork", force=True)  # of loaders, as in any process
    os.setsid()
    descriptor = os.open(output, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    torch.set_num_threads(1)
    sys.argv[:] = [program, *arguments]
    try:
        runpy.run_path(program, run_name="__main__")
    except Exception:  # which multiprocessing would print in its own way
        sys.excepthook(*sys.exc_info())
        sys.exit(1)


def start(program: str, arguments: list[str], cwd: Path, environment: dict[str, str], output: str) -> BaseProcess:
    """Start a program that is written in Python, in a session of its own; it prints to the end of the file `output`."""
    process = SERVER.Process(target=_run, args=(program, arguments, cwd, environment, output))
    process.start()
    return process
