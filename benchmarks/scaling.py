"""What steps cost on one to eight devices, on paper and compiled; two networks on 64.

    python -m benchmarks.scaling [--quick] [--json PATH]

Every method has as many rows, or chains, on each of K simulated devices (weak scaling).
From the program that `fit` or `sample` compiles for them come floating-point work,
memory and the bytes of every collective operation, loops multiplied out, beside the
formulas of `costs/model.py`, which then say what WideResNet-28x10 and ResNet-50 would
cost.

Simulated devices share the processor's cores, so that time cannot stand still as K
grows: on c cores K are to take K / min(c, K) times as long as one. One device alone
would use several cores, so that times want `taskset -c 0`. The processor's own time,
which other jobs do not lengthen, is to be a line in K: that of a call, whatever K, and
K times that of a device.
"""

import json as json_lib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from ._timing import Target, print_table, print_targets, write_json
from .costs import programs
from .costs.networks import BF16, FLOAT32, arithmetic

NUM_DEVICES = (1, 2, 4, 8)
MEASURED = {"flops": "work", "state_bytes": "state", "sent_bytes": "traffic"}
CLOCKS = {"ms": "time", "processor_ms": "processor time"}
ROOT = Path(__file__).resolve().parents[1]


def measured(num_rounds: int) -> list[dict[str, Any]]:
    """A row for each method and number of devices."""
    rows = on_devices(NUM_DEVICES, num_rounds)
    for method in dict.fromkeys(row["method"] for row in rows):
        alike = [row for row in rows if row["method"] == method]
        for row in alike:
            _compare(row, alike[0])
        if num_rounds:
            _fit_times(alike)
    return rows


def _compare(row: dict[str, Any], one: dict[str, Any]) -> None:
    """With what is on paper, and with one device."""
    for quantity in MEASURED:
        on_paper = row[f"{quantity}_on_paper"]
        row[f"{quantity}_over_paper"] = over(row[quantity], on_paper)
    for quantity in ("flops", "temp_bytes"):
        row[f"{quantity}_over_one"] = row[quantity] / one[quantity]
    if "ms" in row:
        devices, num_cores = row["devices"], len(os.sched_getaffinity(0))
        times = {"ms": devices / min(devices, num_cores), "processor_ms": devices}
        for clock in CLOCKS:
            row[f"{clock}_over_one"] = row[clock] / (times[clock] * one[clock])


def _fit_times(rows: list[dict[str, Any]]) -> None:
    """Processor time as that of a call and of each device: least relative squares."""
    devices = np.array([row["devices"] for row in rows])
    taken = np.array([row["processor_ms"] for row in rows])
    of_device, of_call = np.polyfit(devices, taken, 1, w=1 / taken)
    for row in rows:
        row["call_ms"], row["device_ms"] = float(of_call), float(of_device)
        line = of_call + of_device * row["devices"]
        row["processor_ms_over_line"] = row["processor_ms"] / float(line)


def over(read: float, on_paper: float) -> float:
    """Their ratio; 1 of nothing to nothing."""
    if on_paper:
        return read / on_paper
    return 1.0 if not read else float("inf")


def on_devices(
    numbers: tuple[int, ...], num_rounds: int = 0, names: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """What a process with eight devices finds on some of them."""
    module, listed = "benchmarks.costs.on_devices", ",".join(map(str, numbers))
    command = [sys.executable, "-m", module, listed, str(num_rounds), *names]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    done.check_returncode()
    return json_lib.loads(done.stdout.splitlines()[-1])


def worst(rows: list[dict[str, Any]], name: str) -> float:
    """Of ratios the one that is farthest from 1."""
    return max((row[name] for row in rows), key=lambda r: abs(r - 1))


def find_targets(rows: list[dict[str, Any]]) -> list[Target]:
    """Within a fifth, of every method and number of devices."""
    ratios = {
        f"{label}: read / on paper": f"{quantity}_over_paper"
        for quantity, label in MEASURED.items()
    }
    ratios["weak scaling, work: K devices / one"] = "flops_over_one"
    if "ms" in rows[0]:
        line = "weak scaling, processor time: measured / a call's and K devices'"
        ratios[line] = "processor_ms_over_line"
    targets = [
        Target(label, worst(rows, name), at_least=0.8, at_most=1.2)
        for label, name in ratios.items()
    ]
    for clock, label in CLOCKS.items() if "ms" in rows[0] else ():
        most = max(row[f"{clock}_over_one"] for row in rows)
        about = f"weak scaling, {label}: K devices / K times one, at most"
        targets.append(Target(about, most, at_most=1.2))
    return targets


def main(*, quick: bool = False, json: Path | None = None) -> None:
    """Compile, read, time, and compare.

    Args:
        quick: without times.
        json: where to write the results: a file, or a folder for NAME-PROCESSOR.json.
    """
    rows = measured(0 if quick else 9)
    ratios = [f"{name}_over_paper" for name in MEASURED]
    ratios += ["temp_bytes_over_one", *(f"{clock}_over_one" for clock in CLOCKS), "ms"]
    print_table(
        "A step of each device: over what is on paper; over K times one",
        ("method", "K", *MEASURED.values(), "scratch", *CLOCKS.values(), "ms"),
        [
            (row["method"], row["devices"], *(row.get(name) for name in ratios))
            for row in rows
        ],
    )
    networks, on_paper = arithmetic()
    print_table(
        "On paper",
        ("network", "method", "K", "TFLOP", "state GB", "sent MB", "sent / computed"),
        [
            (
                row["network"],
                row["method"],
                row["devices"],
                row["flops"] / 1e12,
                row["state_bytes"] / 1e9,
                row["sent_bytes"] / 1e6,
                row["sending_over_compute"],
            )
            for row in on_paper
        ],
    )
    targets = find_targets(rows)
    print_targets(targets)
    if json is not None:
        content = {
            "measured": {
                "cases": rows,
                "num_cores": len(os.sched_getaffinity(0)),
                "rows_a_device": programs.ROWS,
                "num_weights": programs.NETWORK.num_weights,
            },
            "on paper": {
                "cases": on_paper,
                "networks": {name: n._asdict() for name, n in networks.items()},
                "bf16": BF16._asdict(),
                "float32": FLOAT32._asdict(),
            },
        }
        write_json(json, content, targets)


if __name__ == "__main__":
    tyro.cli(main)
