"""Runs as processes: side by side, failed, interrupted, orphaned, gone on with.

Stand-ins count in place of training: `stand_in.py`.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ornstein._files import lock_folder
from ornstein.sweep import Job, Outcome, Processes, Ray, _engine, _job
from ornstein.sweep._engine import shares_of_cores
from ornstein.sweep._job import Attempt

STAND_IN = str(Path(__file__).with_name("stand_in.py"))
WAIT = 60.0


class Enough(Exception):
    """What `heed` raises."""


def jobs_in(path: Path, *hows: str) -> list[Job]:
    (path / "logs").mkdir(parents=True, exist_ok=True)
    jobs = []
    for i, how in enumerate(hows):
        folder = path / "runs" / str(i)
        call = lambda word, folder=folder, how=how: [STAND_IN, str(folder), word, how]
        log, end = path / "logs" / f"{i}.txt", path / "logs" / f"{i}.json"
        start, resume = call("begin"), call("resume")
        jobs.append(Job(str(i), folder, log, end, start, resume, {}, path))
    return jobs


def carry_out(jobs: list[Job], engine=None, heed=lambda: None) -> dict[str, Outcome]:
    engine = Processes(2) if engine is None else engine
    todo = [job for job in jobs if not job.is_finished]
    return {outcome.name: outcome for outcome in engine.outcomes(todo, heed)}


def calls(job: Job) -> list[str]:
    return [path.read_text().split()[0] for path in sorted(job.folder.glob("call-*"))]


def pids(jobs: list[Job]) -> list[int]:
    files = [file for job in jobs for file in job.folder.glob("call-*")]
    return [int(text.split()[1]) for f in files if (text := f.read_text())]


def is_alive(pid: int) -> bool:
    """Not one that has ended and that nobody has asked after."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def until(condition) -> None:
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def test_a_failed_run_stops_no_other_and_is_tried_again(tmp_path: Path):
    """Catches a failure that ends the sweep, that is kept for good, or without why."""
    jobs = jobs_in(tmp_path, "well", "fail", "die", "well", "stuck")
    found = carry_out(jobs)
    codes = {name: outcome.code for name, outcome in found.items()}
    assert codes == {"0": 0, "1": 2, "2": -signal.SIGKILL, "3": 0, "4": 1}
    assert found["1"].said == "it cannot be: write another."
    assert "SIGKILL (there may not have been enough memory)" in found["2"].said
    assert [job.is_finished for job in jobs] == [True, False, False, True, False]
    (tmp_path / "runs" / "mended").touch()
    assert set(carry_out(jobs)) == {"1", "2", "4"}
    assert jobs[1].is_finished
    assert calls(jobs[1]) == calls(jobs[4]) == ["begin", "resume"]
    assert calls(jobs[0]) == ["begin"]
    assert jobs[1].log.read_text().count("$ ") == 2


def test_interrupted_runs_save_and_go_on(tmp_path: Path):
    """Catches runs that are left behind, killed, begun again, or called failed."""
    jobs = jobs_in(tmp_path, *["well"] * 5)

    def heed() -> None:
        if jobs[0].is_finished and any((j.folder / "count").exists() for j in jobs[2:]):
            raise Enough

    with pytest.raises(Enough):
        carry_out(jobs, heed=heed)
    assert not any(map(is_alive, pids(jobs)))
    begun = [job for job in jobs if calls(job) and not job.is_finished]
    assert begun
    assert all((job.folder / "saved").exists() for job in begun)
    assert not any(job.end.exists() for job in begun)
    assert len(carry_out(jobs)) < 5
    assert all(job.is_finished for job in jobs)
    assert all(calls(job) == ["begin", "resume"] for job in begun)


def test_no_more_runs_at_a_time_than_workers(tmp_path: Path):
    """Catches one worker that is two, and two that are one."""
    for number, how in ((1, "well"), (2, "not alone")):
        jobs = jobs_in(tmp_path / str(number), *[how] * 4)
        seen = []
        count = lambda jobs=jobs, seen=seen: seen.append(sum(map(is_alive, pids(jobs))))
        found = carry_out(jobs, Processes(number), count)
        assert [outcome.code for outcome in found.values()] == [0] * 4
        assert 0 < max(seen) <= number


PARENT = """
import sys
from pathlib import Path
from test_jobs import carry_out, jobs_in
carry_out(jobs_in(Path(sys.argv[1]), *["well"] * 6))
"""


def test_six_runs_of_a_killed_sweep_end_as_those_of_another(tmp_path: Path):
    """SIGKILL leaves no orphans, and what was begun is gone on with.

    Catches runs that outlive their sweep: the pipe was inherited, or closed by nobody.
    """
    places = [str(Path(__file__).parent), *sys.path]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    jobs = jobs_in(tmp_path, *["well"] * 6)
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], env=environ
    )
    until(
        lambda: (
            jobs[0].is_finished and any((j.folder / "count").exists() for j in jobs[2:])
        )
    )
    parent.kill()
    assert parent.wait() == -signal.SIGKILL
    until(lambda: not any(map(is_alive, pids(jobs))))
    begun = [job for job in jobs if calls(job) and not job.is_finished]
    assert begun
    carry_out(jobs)
    results = [json.loads((j.folder / "result.json").read_text()) for j in jobs]
    assert results == [{"count": 10}] * 6
    assert all(calls(job) == ["begin", "resume"] for job in begun)


def test_a_run_waits_for_who_is_at_work_in_its_folder(tmp_path: Path):
    """Catches a second process in a folder that an orphan has not left yet."""
    (job,) = jobs_in(tmp_path, "well")
    job.folder.mkdir(parents=True)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(job.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline()
    attempt = Attempt(job)
    assert [attempt.poll() for _ in range(3)] == [None] * 3
    assert not job.log.exists()
    holder.communicate()
    with lock_folder(job.folder):  # it is free now, and in the same thread counts so
        attempt.poll()
    assert job.log.exists()
    attempt.kill()
    attempt.wait()


HOLD = """
import sys
from pathlib import Path
from ornstein._files import lock_folder
with lock_folder(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_interruption_kills(tmp_path: Path, monkeypatch):
    """Catches a run that saves for ever and cannot be ended."""
    (job,) = jobs_in(tmp_path, "well")
    attempt = Attempt(job)
    attempt.poll()
    until(lambda: (job.folder / "count").exists())
    monkeypatch.setattr(Attempt, "interrupt", lambda self: None)
    wait = subprocess.Popen.wait

    def interrupted(*args, **kwargs):
        monkeypatch.setattr(subprocess.Popen, "wait", wait)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _job.stop([attempt])
    attempt.wait()
    assert not job.is_finished


def test_workers_share_the_cores(monkeypatch):
    """Catches workers that all have threads for every core, or cores nobody uses."""
    for cores, number, expected in [
        ({0, 1, 2, 3, 4}, 2, [[0, 1, 2], [3, 4]]),
        ({2, 7}, 3, [[2], [7], [2]]),
        ({0, 1}, 1, [[]]),
    ]:
        monkeypatch.setattr(
            _engine.os, "sched_getaffinity", lambda _, c=cores: c, raising=False
        )
        assert shares_of_cores(number) == expected


def test_cores_are_taken_for_a_start_and_given_back(monkeypatch):
    """Catches a sweep that is kept to its last run's cores, on any number of cores."""
    now = [{0, 1, 2}]
    give = lambda _, cores: now.append(set(cores))
    monkeypatch.setattr(_job.os, "sched_getaffinity", lambda _: now[-1], raising=False)
    monkeypatch.setattr(_job.os, "sched_setaffinity", give, raising=False)
    with _job._kept_to([1]):
        assert now[-1] == {1}
    assert now == [{0, 1, 2}, {1}, {0, 1, 2}]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="Linux alone has it")
def test_a_run_is_kept_to_its_cores(tmp_path: Path):
    """Catches a share that its process never hears of, or that its parent keeps.

    And a run that a terminal's Ctrl-C reaches beside its sweep: told to end twice, it
    would not save.
    """
    core = min(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    (job,) = jobs_in(tmp_path, "well")
    attempt = Attempt(job, num_cores=1, cores=[core])
    attempt.poll()
    until(lambda: (job.folder / "count").exists())
    (pid,) = pids([job])
    assert os.sched_getaffinity(pid) == {core}
    assert os.sched_getaffinity(0) == before
    assert os.getsid(pid) == pid != os.getsid(0)
    variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    assert {b"NPROC=1", b"OMP_NUM_THREADS=1"} <= set(variables)
    attempt.kill()
    attempt.wait()


def test_ray_carries_out_the_same_runs(tmp_path: Path):
    """Catches a failure that Ray keeps to itself, and its handlers in place of ours."""
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    jobs = jobs_in(tmp_path, "well", "fail", "well")
    before = signal.getsignal(signal.SIGTERM)
    found = carry_out(jobs, Ray(num_workers=2))
    assert {name: outcome.code for name, outcome in found.items()} == {
        "0": 0,
        "1": 2,
        "2": 0,
    }
    assert found["1"].said == "it cannot be: write another."
    assert signal.getsignal(signal.SIGTERM) is before
    # Longer than a busy machine takes to tell it, so that it cannot end by itself.
    (long,) = jobs_in(tmp_path / "long", "long")

    def heed() -> None:
        if (long.folder / "count").exists():
            raise Enough

    with pytest.raises(Enough):
        carry_out([long], Ray(), heed)
    assert not any(map(is_alive, pids([long])))
    assert (long.folder / "saved").exists()


def test_ray_tries_a_run_again_whose_worker_is_lost(tmp_path: Path):
    """Catches a run that is lost with its machine, or begun anew."""
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    (job,) = jobs_in(tmp_path, "slow")
    lost = []

    def heed() -> None:
        if not lost and (job.folder / "count").exists():
            stat = Path(f"/proc/{pids([job])[0]}/stat").read_text()
            lost.append(int(stat.rsplit(")", 1)[1].split()[1]))
            os.kill(lost[0], signal.SIGKILL)

    assert carry_out([job], Ray(), heed)["0"].code == 0
    assert lost
    assert calls(job) == ["begin", "resume"]


def test_without_ray_a_sentence_says_how_to_have_it(monkeypatch):
    """Catches a traceback, and runs that begin before it is known."""
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        ValueError, match=r"not installed: `pip install 'ornstein\[ray\]'`"
    ):
        Ray()
