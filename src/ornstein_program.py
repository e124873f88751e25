"""The program `ornstein`, which a Ctrl-C ends quietly while it is still starting.

Beside the package: carrying out a command imports JAX and more, which takes seconds.
What it can say without, it says at once.
"""

import gc
import os
import signal
import sys
from types import FrameType

from ornstein import __version__
from ornstein_processes import watch

COMMANDS = {
    "train": "Train a Bayesian network, or a model of sequences, and judge it on test "
    "rows.",
    "sample": "Sample a network's weights by Markov chains, and judge them on test "
    "rows.",
    "sweep": "Train or sample once for every combination of options: a table of many "
    "runs.",
    "compare": "Which method is for your table? Cross-validate each, beside "
    "scikit-learn's.",
    "evaluate": "Judge a trained run on its test rows again, with other numerics if "
    "you like.",
    "predict": "Predict your own inputs with a trained run.",
    "export": "Write what a run predicts as a program that runs without ornstein.",
    "report": "Write the report of a run, or of several side by side, as one HTML "
    "file.",
    "prune": "Remove the weights of a mean-field run whose mean is smallest beside "
    "their scale.",
    "reproduce": "Make a figure or table again; finished pieces are kept, and gone on "
    "from.",
    "info": "Versions, device, data sets and where they are, presets, experiments.",
    "completion": "Write the file by which a shell completes commands, options and "
    "values by Tab.",
}
"""The commands, and the first line of what each says of itself."""


def main() -> int:
    """Run the command line; the exit code."""
    _open_closed()
    args = sys.argv[1:]
    if args == ["--version"]:
        print(f"ornstein {__version__}")
        return 0
    if args and args[0] in ("-h", "--help", "--help-all"):
        print(_help())
        return 0
    if not args:
        names = ", ".join(COMMANDS)
        print(
            f"ornstein: a command is missing: give one of {names}, or --help.",
            file=sys.stderr,
        )
        return 2
    if "--distributed" in args and not {"-h", "--help", "--help-all"} & set(args):
        return watch(args)
    before = signal.signal(signal.SIGINT, _end)
    # Imports and tracing make objects by the million, few of them in cycles, and Python
    # looks for those after every 700: a sixth of a short run.
    gc.set_threshold(20_000, 10, 10)
    from ornstein.cli import main as run

    gc.freeze()

    signal.signal(signal.SIGINT, before)
    try:
        return run()
    except KeyboardInterrupt:  # outside of what `run` handles
        return 130
    finally:  # it has ended: a Ctrl-C changes nothing now, and would be a traceback
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _open_closed() -> None:
    """Lead closed streams nowhere.

    The next file would get their number, and with it what C++ prints.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = open(os.devnull, mode)
            os.set_inheritable(nowhere.fileno(), True)
            setattr(sys, name, nowhere)


def _help() -> str:
    """What there is, and where more is said."""
    rows = [f"  {name:<10}  {first}" for name, first in COMMANDS.items()]
    return "\n".join(
        [
            "usage: ornstein COMMAND [OPTIONS]",
            "",
            "Bayesian deep learning by stochastic dynamics.",
            "",
            *rows,
            "",
            "`ornstein COMMAND --help` shows the options of a command; for train and",
            "sample those that the --data and the --model or --kernel beside it read,",
            "and --help-all shows every one. `ornstein --version` says the version.",
        ]
    )


def _end(number: int, frame: FrameType | None) -> None:
    """End at once: libraries swallow exceptions that they meet while importing."""
    del number, frame
    os.write(2, b"ornstein: interrupted while starting.\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
