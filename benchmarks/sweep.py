"""Sweeps of 40 small runs, killed twice, beside one that nobody disturbed.

    python -m benchmarks.sweep --out FOLDER [--engines processes ray] [--workers 1]
        [--json PATH]

In FOLDER the sweeps are kept: the same call goes on with them. Each engine's sweep is
killed by SIGKILL while a run is under way and 10 are finished, and told to end by
SIGTERM once 25 are. Its `table.csv` is then compared with the undisturbed one's, byte
by byte. An hour on one core: nearly all of it is the start and the report of each run.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from ._timing import Target, print_targets, write_json

OVER = ["seed=0..9", "width=3,4", "model=laplace,mean-field"]
KILLS = ((10, signal.SIGKILL), (25, signal.SIGTERM))


def write_data(path: Path) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    y = x @ [1.0, -1.0] + 0.1 * rng.normal(size=40)
    rows = [f"{a:.4f},{b:.4f},{c:.4f}" for (a, b), c in zip(x, y, strict=True)]
    path.write_text("\n".join(["a,b,y", *rows, ""]))
    return path


def call(folder: Path, data: Path, engine: str, workers: int) -> list[str]:
    args = [sys.executable, "-m", "ornstein", "sweep", "--out", str(folder)]
    args += ["--engine", engine, "--workers", str(workers)]
    args += [part for axis in OVER for part in ("--over", axis)]
    run = ["train", "--data", str(data), "--target", "y", "--steps", "200"]
    return [*args, "--", *run, "--test-draws", "8"]


def num_finished(folder: Path) -> int:
    return len(list(folder.glob("runs/*/result.json")))


def is_under_way(folder: Path) -> bool:
    """Whether a run has trained for some steps, and has no result."""
    begun = [p for p in folder.glob("runs/*/metrics.jsonl") if p.stat().st_size]
    return any(not path.with_name("result.json").exists() for path in begun)


def disturbed(args: list[str], folder: Path) -> list[str]:
    """Two calls that are killed, and one that is not; how each ended."""
    ends = []
    for least, number in KILLS:
        if num_finished(folder) > least:
            continue  # of an earlier call of this script
        process = subprocess.Popen(args)
        while process.poll() is None:
            if num_finished(folder) >= least and is_under_way(folder):
                process.send_signal(number)
                ends.append(f"{number.name} after {num_finished(folder)} runs")
                break
            time.sleep(0.05)
        ends.append(f"exit code {process.wait()}")
    ends.append(f"exit code {subprocess.run(args, check=False).returncode}")
    return ends


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--engines", nargs="*", default=["processes", "ray"])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    data = write_data(options.out / "rows.csv")
    started = time.monotonic()
    whole = options.out / "undisturbed"
    args = call(whole, data, "processes", options.workers)
    subprocess.run(args, check=True)
    num = num_finished(whole)
    found: dict[str, dict[str, Any]] = {
        "undisturbed": {"seconds": round(time.monotonic() - started, 1), "runs": num}
    }
    expected = (whole / "table.csv").read_bytes()
    for engine in options.engines:
        started, folder = time.monotonic(), options.out / engine
        ends = disturbed(call(folder, data, engine, options.workers), folder)
        found[engine] = {
            "ends": ends,
            "seconds": round(time.monotonic() - started, 1),
            "runs": num_finished(folder),
            "resumed": sum(
                len(json.loads(path.read_text())["calls"]) > 1
                for path in folder.glob("runs/*/calls.json")
            ),
            "is_same_table": (folder / "table.csv").read_bytes() == expected,
        }
    found["machine"] = {"cores": len(os.sched_getaffinity(0))}
    print(json.dumps(found, indent=2))
    same = [int(found[engine]["is_same_table"]) for engine in options.engines]
    targets = [
        Target(f"{engine}: tables that are the undisturbed one's", is_same, at_least=1)
        for engine, is_same in zip(options.engines, same, strict=True)
    ]
    print_targets(targets)
    if options.json is not None:
        write_json(options.json, found, targets)
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
