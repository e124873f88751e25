"""What steps cost on one to eight devices, on paper and compiled; two networks on 64.

    python -m benchmarks.scaling [--quick] [--json PATH]

Every method has as many rows, or chains, on each of K simulated devices (weak scaling).
From the program that `fit` or `sample` compiles for them come floating-point work,
memory and the bytes of every collective operation, loops multiplied out, beside the
formulas of `costs/model.py`. Devices that are simulated share the processor's cores, so
that time cannot stand still as K grows: K devices on c cores are to take K / min(c, K)
times as long as one on one core, and what is more than that is the price of
cutting. On two or more cores one device alone would use several, so that times want
`taskset -c 0`. The processor's own time, which other jobs do not lengthen, is to be K
times that of one. The formulas then say what WideResNet-28x10 and ResNet-50 would cost.
"""

import json as json_lib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import tyro

from ._timing import Target, print_table, print_targets, write_json
from .costs import programs
from .costs.networks import BF16, FLOAT32, arithmetic

NUM_DEVICES = (1, 2, 4, 8)
MEASURED = {"flops": "work", "state_bytes": "state", "sent_bytes": "traffic"}
CLOCKS = {"ms": "time", "processor_ms": "processor time"}
ROOT = Path(__file__).resolve().parents[1]


def measured(num_repeats: int) -> list[dict[str, Any]]:
    """A row for each method and number of devices."""
    rows = []
    for devices in NUM_DEVICES:
        for name, found in on_devices(devices, num_repeats).items():
            row = {"method": name, "devices": devices, **found["read"]}
            row |= {clock: found.get(clock) for clock in CLOCKS}
            for quantity in found["on_paper"]:
                row[f"{quantity}_on_paper"] = found["on_paper"][quantity]
            rows.append(row)
    num_cores = len(os.sched_getaffinity(0))
    for row in rows:
        (alone,) = (
            r for r in rows if r["method"] == row["method"] and r["devices"] == 1
        )
        devices = row["devices"]
        row["temp_over_one"] = row["temp_bytes"] / alone["temp_bytes"]
        row["flops_over_one"] = row["flops"] / alone["flops"]
        if num_repeats:
            work = {"ms": devices / min(devices, num_cores), "processor_ms": devices}
            for clock, times in work.items():
                row[f"{clock}_over_paper"] = row[clock] / (times * alone[clock])
        for quantity in MEASURED:
            on_paper = row[f"{quantity}_on_paper"]
            row[f"{quantity}_over_paper"] = over(row[quantity], on_paper)
    return rows


def over(read: float, on_paper: float) -> float:
    """Their ratio; 1 of nothing to nothing."""
    if on_paper:
        return read / on_paper
    return 1.0 if not read else float("inf")


def on_devices(
    devices: int, num_repeats: int = 0, names: tuple[str, ...] = ()
) -> dict[str, Any]:
    """What a process with that many devices finds."""
    module = "benchmarks.costs.on_devices"
    command = [sys.executable, "-m", module, str(devices), str(num_repeats), *names]
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
    if "ms_over_paper" in rows[0]:
        for clock, label in CLOCKS.items():
            ratios[f"weak scaling, {label}: measured / on paper"] = (
                f"{clock}_over_paper"
            )
    return [
        Target(label, worst(rows, name), at_least=0.8, at_most=1.2)
        for label, name in ratios.items()
    ]


def main(*, quick: bool = False, json: Path | None = None) -> None:
    """Compile, read, time, and compare.

    Args:
        quick: without times.
        json: where to write the results: a file, or a folder for NAME-PROCESSOR.json.
    """
    rows = measured(0 if quick else 9)
    columns = ("flops", "state_bytes", "sent_bytes")
    print_table(
        "One step of each device: compiled, and over what is on paper",
        (
            "method",
            "K",
            *(f"{c}  ratio" for c in columns),
            "temp / one",
            "ms",
            "ratio",
            "cpu",
        ),
        [
            (
                row["method"],
                row["devices"],
                *(f"{row[c]:.4g}  {row[f'{c}_over_paper']:.3f}" for c in columns),
                row["temp_over_one"],
                row["ms"],
                row.get("ms_over_paper"),
                row.get("processor_ms_over_paper"),
            )
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
