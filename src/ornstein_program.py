"""The program `ornstein`, which a Ctrl-C ends quietly while it is still starting.

Beside the package: importing anything of it imports JAX, which takes seconds.
"""

import os
import signal
import sys
from types import FrameType


def main() -> int:
    """Run the command line; the exit code."""
    before = signal.signal(signal.SIGINT, _end)
    from ornstein.cli import main as run

    signal.signal(signal.SIGINT, before)
    try:
        return run()
    except KeyboardInterrupt:  # outside of what `run` handles
        return 130


def _end(number: int, frame: FrameType | None) -> None:
    """End at once: libraries swallow exceptions that they meet while importing."""
    del number, frame
    os.write(2, b"ornstein: interrupted while starting.\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
