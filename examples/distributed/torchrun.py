"""torchrun, which ends with one message if a process fails; `launch.sh` starts it."""

import logging
import signal
import sys

from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.run import main

logging.disable(logging.ERROR)  # torchrun's own, about what the message says
try:
    main()
except ChildFailedError as error:
    # a process that was killed is why the others fail
    rank, failure = min(error.failures.items(), key=lambda item: (item[1].exitcode >= 0, item[1].timestamp))
    code = failure.exitcode
    how = f"was killed ({signal.Signals(-code).name})" if code < 0 else f"failed (exit status {code}, see above)"
    sys.exit(
        f"launch.sh: process {rank} {how}, so all were stopped; run the same command again to go on from the last "
        "checkpoint"
    )
