"""`python -m ornstein.cli._watched`: a command that ends when its parent does.

Its standard input is a pipe of which the parent has the other end, and which closes
when the parent is gone, however it died: then the command is told to end, as by a
scheduler, and saves what it has.
"""

import os
import select
import signal
import sys
import threading

from ._main import main


def run() -> int:
    """Run the command line; the exit code."""
    if select.select([0], [], [], 0)[0]:
        return 143  # the parent is gone already
    threading.Thread(target=_watch, daemon=True).start()
    return main()


def _watch() -> None:
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(run())
