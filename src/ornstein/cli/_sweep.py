"""`ornstein sweep`."""

import contextlib
import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import tyro

from ..sweep import (
    AbstractEngine,
    Cell,
    FailedRunsError,
    Grid,
    Job,
    Outcome,
    Processes,
    Ray,
    SweepFolder,
    SweepTable,
    at_work,
    environ_of,
    read_table,
)
from ._flags import flag, flags_of, said
from ._parse import LOOKED_AT, parse
from ._signals import Interruption, handled
from ._terminal import Terminal, shown
from ._usage import HELP, HELP_ALL, UsageError
from .commands import Sample, Train

EngineName = Literal["processes", "ray"]

_OF_THE_SWEEP = ("out", "resume", "overwrite", "json")
"""Options of a run that the sweep itself gives."""

_SHOWN = (
    "accuracy",
    "rmse",
    "nll",
    "ece",
    "crps",
    "coverage_90",
    "epistemic_share",
    "elbo",
    "r_hat",
)

_ENVIRONMENT = ("JAX_", "ORNSTEIN_", "PYTHONPATH", "XLA_")


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Train or sample once for every combination of options: a table of many runs.

    What stands after -- is the command of one run: `ornstein sweep --out DIR --over
    seed=0..4 --over width=16,32 -- train --data uci/yacht`. Each is a process
    with a run folder of its own. Called again, finished runs are kept, others gone on
    with, and failed ones tried again; `ornstein sweep --out DIR` suffices for that.

    Attributes:
        out: the sweep's folder, with runs/, logs/, table.csv and table.json.
        over: an option of the run and its values, such as seed=0..4 (both ends count)
            or width=16,32; once for each option. yes and no are those of a switch; a
            value of several words stands in quotes, as they are typed.
        engine: processes of this machine, or tasks of Ray: of the cluster that
            RAY_ADDRESS names, or else of this machine.
        workers: runs at a time, 1 by default; on a cluster, as many as it has room for.
        cpus: cores of each run, by Ray; processes share those that there are.
        gpus: accelerators of each run, by Ray; 0.25 for four runs on one.
        table: run nothing: make the table of the runs that are finished.
        json: print the result as JSON, and nothing else, on standard output.
    """

    out: Path
    over: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    engine: EngineName = "processes"
    workers: int | None = None
    cpus: int | None = None
    gpus: float | None = None
    table: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    words: Annotated[tuple[str, ...], tyro.conf.Suppress] = ()

    commands: ClassVar[dict[str, type]] = {}
    """Of which a run is one; the program fills it in."""

    def run(self, terminal: Terminal, command: str) -> dict[str, Any]:
        """Carry it out; the result."""
        if self.table:
            self._check_table_alone()
            sweep = SweepFolder.open(self.out)
            return self._tabulate(sweep, terminal, command)
        engine = self._engine()
        with self._where_it_began():
            grid = self._grid()
        with at_work(self.out, self.words, grid, command) as sweep:
            failed = self._carry_out(sweep, engine, terminal)
            result = self._tabulate(sweep, terminal, command)
        if failed:
            raise FailedRunsError(_failure(sweep, failed))
        return result

    def _check_table_alone(self) -> None:
        given = {"over": self.over, "workers": self.workers, "cpus": self.cpus}
        given |= {"gpus": self.gpus, "engine": self.engine == "ray"}
        for option, value in given.items():
            if value:
                raise UsageError(
                    f"--{option} does nothing for --table, which runs nothing: leave "
                    "it out."
                )
        if self.words:
            raise UsageError("--table runs nothing: leave out what stands after `--`.")

    def _engine(self) -> AbstractEngine:
        if self.engine == "ray":
            cpus = 1 if self.cpus is None else self.cpus
            return Ray(self.workers, cpus, 0.0 if self.gpus is None else self.gpus)
        for option in ("cpus", "gpus"):
            if getattr(self, option) is not None:
                raise UsageError(
                    f"--{option} does nothing for --engine processes: leave it out, or "
                    "give --engine ray."
                )
        return Processes(1 if self.workers is None else self.workers)

    def _grid(self) -> Grid | None:
        """What varies, every run of it checked; `None` to go on with what is there."""
        if not self.over and not self.words:
            return None
        if not self.words:
            raise UsageError(
                "--over needs the command of one run after `--`: write `ornstein sweep "
                "[OPTIONS] -- train ...`."
            )
        if not self.over:
            raise UsageError(
                "a sweep needs what varies: give --over, such as --over seed=0..4."
            )
        self._check_words()
        grid = Grid.parse(self.over)
        flags = flags_of(self.commands[self.words[0]])
        for option in grid.values:
            self._check_option(option)
        for cell in grid:
            self._check_run([*self.words, *_args(cell, flags)], cell)
        return grid

    def _check_words(self) -> None:
        name = self.words[0]
        if name not in ("train", "sample"):
            raise UsageError(
                f"a sweep is of `train` or `sample`, not of {name!r}: write `-- train` "
                "and its options."
            )
        if _gives(self.words, "distributed"):
            raise UsageError(
                "--distributed is of one run, whose processes are started one by one; "
                "a sweep starts its own: leave it out after `--`."
            )
        for option in _OF_THE_SWEEP:
            if _gives(self.words, option):
                raise UsageError(
                    f"{flag(option)} is given by the sweep to each of its runs: leave "
                    "it out after `--`."
                )

    def _check_option(self, option: str) -> None:
        if flag(option) in (*HELP, HELP_ALL):
            raise UsageError(f"--over {option} cannot be: it runs nothing.")
        if option in _OF_THE_SWEEP:
            raise UsageError(
                f"--over {option} cannot be: the sweep gives {flag(option)} to each "
                "of its runs."
            )
        if _gives(self.words, option):
            raise UsageError(
                f"{flag(option)} stands in --over and after `--`: leave one out."
            )

    def _check_run(self, args: list[str], cell: Cell) -> None:
        """Refuse what the command would refuse, before anything runs."""
        refused = _refused(args, self.commands)
        if refused is None:
            return
        if refused == _refused(self.words, self.commands):  # whatever varies
            raise UsageError(refused)
        raise UsageError(f"{_spelt(cell)}: {refused}")

    def _carry_out(
        self, sweep: SweepFolder, engine: AbstractEngine, terminal: Terminal
    ) -> list[Outcome]:
        """The outcomes of runs that failed."""
        jobs = _jobs(sweep, self._environ())
        todo = [job for job in jobs if not job.is_finished]
        num_done, failed = len(jobs) - len(todo), []
        terminal.say(
            f"{len(jobs)} runs of `{shlex.join(sweep.words)}` in {sweep.path}"
            + (f", of which {num_done} are finished" if num_done else "")
        )
        interruption = Interruption()
        outcomes = engine.outcomes(todo, interruption.raise_last)
        try:
            with handled(interruption), contextlib.closing(outcomes):
                interruption.hold()
                for outcome in outcomes:
                    if outcome.code == 0:
                        num_done += 1
                        how = f"finished in {outcome.seconds:.0f} s"
                    else:
                        failed.append(outcome)
                        how = f"failed: {outcome.said}"
                    count = f"[{num_done + len(failed)}/{len(jobs)}]"
                    terminal.say(f"{count} {outcome.name}: {how}")
        except KeyboardInterrupt:
            terminal.say(
                f"Interrupted, with {num_done} of {len(jobs)} runs finished: go on "
                f"with `ornstein sweep --out {shlex.quote(str(sweep.path))}`."
            )
            raise
        return failed

    def _where_it_began(self) -> contextlib.AbstractContextManager[None]:
        """The folder in which its runs' relative paths are looked for."""
        if SweepFolder.is_at(self.out):
            sweep = SweepFolder.open(self.out)
            if sweep.has_begun and sweep.working.is_dir():
                return contextlib.chdir(sweep.working)
        return contextlib.nullcontext()

    def _environ(self) -> dict[str, str]:
        """Variables of each run: on one accelerator, several share its memory.

        And one that says that what it is given was looked at when the sweep began.
        """
        environ = environ_of(_ENVIRONMENT) | {LOOKED_AT: "1"}
        share = "XLA_PYTHON_CLIENT_MEM_FRACTION"
        at_once = self.workers or 1
        if self.engine == "ray":
            at_once = 1 / self.gpus if self.gpus and self.gpus < 1 else 1
        if at_once > 1:
            environ.setdefault(share, f"{0.9 / at_once:.3f}")
        return environ

    def _tabulate(
        self, sweep: SweepFolder, terminal: Terminal, command: str
    ) -> dict[str, Any]:
        table = read_table(sweep)
        written = table.write(sweep.path, command)
        summary = table.summary()
        if table.rows:
            terminal.grid(_title(table), [_line(entry) for entry in summary])
        if table.missing:
            terminal.say(
                f"{len(table.missing)} of {len(sweep.cells)} runs have no result yet: "
                f"{', '.join(table.missing[:3])}"
                f"{', ...' if len(table.missing) > 3 else ''}"
            )
        names = ", ".join(path.name for path in written)
        terminal.say(f"Wrote {sweep.path}: {names}")
        return {
            "out": str(sweep.path),
            "num_runs": len(sweep.cells),
            "num_finished": len(table.rows),
            "missing": list(table.missing),
            "summary": summary,
        }


def _refused(args: Sequence[str], commands: Mapping[str, type]) -> str | None:
    """What is wrong with a run's arguments, if anything."""
    try:
        command = parse(args, commands)
        if isinstance(command, Train | Sample):
            command.several.check()
            command.check()
    except (ValueError, TypeError, NotImplementedError) as error:
        return said(error)
    return None


def _jobs(sweep: SweepFolder, environ: Mapping[str, str]) -> list[Job]:
    """What to call for each run; absolute, since workers may be elsewhere."""
    program = ["-P", "-m", "ornstein.cli._watched"]
    name = sweep.words[0]
    flags = flags_of(Sweep.commands[name])
    jobs = []
    for cell in sweep.cells:
        folder = sweep.run(cell).absolute()
        start = [*sweep.words, *_args(cell, flags), "--out", str(folder)]
        jobs.append(
            Job(
                cell.name,
                folder,
                sweep.log(cell).absolute(),
                sweep.end(cell).absolute(),
                start=[*program, *start],
                resume=[*program, name, "--resume", str(folder), *_mesh(start)],
                environ=environ,
                working=sweep.working,
            )
        )
    return jobs


def _mesh(args: list[str]) -> list[str]:
    """`--mesh`, which a run that goes on has to be told again."""
    for i, arg in enumerate(args):
        if arg == "--mesh":
            return args[i : i + 2]
        if arg.startswith("--mesh="):
            return [arg]
    return []


def _args(cell: Cell, flags: list[str]) -> list[str]:
    """A combination as arguments: `yes` and `no` of a switch, and several words."""
    args = []
    for option, value in cell.settings.items():
        name, negative = flag(option), flag(f"no_{option}")
        if negative in flags and value in ("yes", "no"):
            args.append(name if value == "yes" else negative)
            continue
        try:
            args += [name, *shlex.split(value)]
        except ValueError as error:
            raise UsageError(
                f"--over {option}={value} has a quotation mark without another: close "
                "it."
            ) from error
    return args


def _gives(words: tuple[str, ...], option: str) -> bool:
    """Whether arguments have an option, in any spelling."""
    names = {word.partition("=")[0].replace("_", "-") for word in words}
    return bool({flag(option), flag(f"no_{option}")} & names)


def _spelt(cell: Cell) -> str:
    return " ".join(f"{flag(name)} {value}" for name, value in cell.settings.items())


def _title(table: SweepTable) -> str:
    over = [name for name in table.settings if name in ("seed", "split")]
    if not over:
        return "The runs"
    return f"Mean ± standard error over {' and '.join(over)}"


def _line(entry: dict[str, Any]) -> dict[str, Any]:
    """A line of the summary as people read it."""
    line = {**entry["settings"], "runs": entry["runs"]}
    for name in _SHOWN:
        if name not in entry["mean"]:
            continue
        mean, error = entry["mean"][name], entry["standard_error"][name]
        line[name] = mean if error is None else f"{shown(mean)} ± {error:.2g}"
    return line


def _failure(sweep: SweepFolder, failed: list[Outcome]) -> str:
    first = failed[0]
    logs = sweep.path / "logs"
    return (
        f"{len(failed)} of {len(sweep.cells)} runs failed, {first.name} with "
        f"{first.said!r}; {logs} has what each said, and the same call tries them "
        "again."
    )
