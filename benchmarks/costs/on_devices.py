"""Read and time each method's program on K simulated devices; print JSON.

    python -m benchmarks.costs.on_devices K [NUM_REPEATS [NAME ...]]

A process says how many devices it has before JAX begins, so that each K is one of its
own.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any


def measure(devices: int, num_repeats: int, names: list[str]) -> dict[str, Any]:
    """Of each case what its program says, what it should, and milliseconds a step."""
    from .programs import cases

    found = {}
    for name, case in cases(devices).items():
        if names and name not in names:
            continue
        caught = case.catch()
        found[name] = {"read": caught.counts(), "on_paper": case.on_paper._asdict()}
        if num_repeats:
            caught.again()
            found[name] |= timed(caught.again, num_repeats)
        print(f"{devices} devices: {name}", file=sys.stderr, flush=True)
    return found


def timed(run: Callable[[], Any], num_repeats: int) -> dict[str, float]:
    """Median milliseconds: by the clock, and of the processor for all devices.

    The latter do not count what else the machine does meanwhile.
    """
    clocks = {"ms": time.perf_counter, "processor_ms": time.process_time}
    taken: dict[str, list[float]] = {name: [] for name in clocks}
    for _ in range(num_repeats):
        starts = {name: clock() for name, clock in clocks.items()}
        run()
        for name, clock in clocks.items():
            taken[name].append(1e3 * (clock() - starts[name]))
    return {name: statistics.median(times) for name, times in taken.items()}


def main() -> None:
    """See above."""
    devices, *rest = sys.argv[1:]
    flag = f"--xla_force_host_platform_device_count={devices}"
    os.environ["XLA_FLAGS"] = flag
    os.environ["JAX_PLATFORMS"] = "cpu"
    num_repeats = int(rest[0]) if rest else 0
    print(json.dumps(measure(int(devices), num_repeats, rest[1:])))


if __name__ == "__main__":
    main()
