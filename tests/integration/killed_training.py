"""fairseq-train that kills itself hard: `killed_training.py WHAT NUMBER ARGUMENTS…`.

"copy N" in the middle of the N-th copy of a checkpoint, "save N" in the middle of the
N-th one that is written.
"""

import io
import os
import shutil
import signal
import sys

import torch
from fairseq_cli.train import cli_main

what, number = sys.argv.pop(1), int(sys.argv.pop(1))
calls = 0


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def copyfile(source, target, **kwargs):
    global calls
    calls += 1
    if calls < number:
        return copy(source, target, **kwargs)
    with open(source, "rb") as file, open(target, "wb") as half:
        half.write(file.read(os.path.getsize(source) // 2))
    kill()


def torch_save(content, file, *args, **kwargs):
    global calls
    calls += 1
    if calls < number:
        return save(content, file, *args, **kwargs)
    save(content, buffer := io.BytesIO(), *args, **kwargs)
    file.write(buffer.getvalue()[: len(buffer.getvalue()) // 2])
    file.flush()
    kill()


if what == "copy":
    copy, shutil.copyfile = shutil.copyfile, copyfile
else:
    save, torch.save = torch.save, torch_save
cli_main()
