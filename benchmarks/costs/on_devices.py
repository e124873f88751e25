"""Read and time each method's program on some of eight simulated devices; print JSON.

    python -m benchmarks.costs.on_devices K,K,... [NUM_ROUNDS [NAME ...]]

A process says how many devices it has before JAX begins, so that this is one of its
own. All numbers of devices are in one, so that what else the machine does meets all
alike.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any


def measure(
    numbers: list[int], num_rounds: int, names: list[str]
) -> list[dict[str, Any]]:
    """Of each case what its program says, what it should, and milliseconds a step."""
    from .programs import cases

    by_number = {devices: cases(devices) for devices in numbers}
    rows = []
    for name in names or by_number[numbers[0]]:
        runs = {}
        for devices in numbers:
            case = by_number[devices][name]
            caught = case.catch()
            row = {"method": name, "devices": devices, **caught.counts()}
            rows.append(
                row | {f"{q}_on_paper": v for q, v in case.on_paper._asdict().items()}
            )
            runs[devices] = caught.again
        if num_rounds:
            for row in rows[-len(numbers) :]:
                runs[row["devices"]]()
            times = timed(runs, num_rounds)
            for row in rows[-len(numbers) :]:
                row |= times[row["devices"]]
        print(name, file=sys.stderr, flush=True)
    return rows


def timed(
    runs: Mapping[int, Callable[[], Any]], num_rounds: int
) -> dict[int, dict[str, float]]:
    """Median milliseconds: by the clock, and of the processor for all devices.

    The latter do not count what else the machine does meanwhile.
    """
    clocks = {"ms": time.perf_counter, "processor_ms": time.process_time}
    taken = {number: {name: [] for name in clocks} for number in runs}
    for _ in range(num_rounds):
        for number, run in runs.items():
            starts = {name: clock() for name, clock in clocks.items()}
            run()
            for name, clock in clocks.items():
                taken[number][name].append(1e3 * (clock() - starts[name]))
    return {
        number: {name: statistics.median(ms) for name, ms in by_clock.items()}
        for number, by_clock in taken.items()
    }


def main() -> None:
    """See above."""
    of_caller = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{of_caller} --xla_force_host_platform_device_count=8"
    os.environ["JAX_PLATFORMS"] = "cpu"
    numbers, *rest = sys.argv[1:]
    devices = [int(number) for number in numbers.split(",")]
    num_rounds = int(rest[0]) if rest else 0
    print(json.dumps(measure(devices, num_rounds, rest[1:])))


if __name__ == "__main__":
    main()
