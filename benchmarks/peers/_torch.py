"""What the peers in PyTorch share."""

import statistics
import time
from collections.abc import Callable

import jax
import numpy as np
import torch
import torchsde


def from_jax(x: jax.Array) -> torch.Tensor:
    """A tensor of its own memory."""
    return torch.from_numpy(np.array(x))


class GivenIncrements(torchsde.BaseBrownian):
    """A Brownian path from 0 of which the increments over equal steps are known.

    Args:
        increments: (steps, batch, size).
        dt: the step; without it, the path is one on [0, 1].
    """

    def __init__(self, increments: torch.Tensor, *, dt: float | None = None):
        super().__init__()
        self._increments = increments
        self._steps_per_time = len(increments) if dt is None else 1 / dt

    def __repr__(self):
        return f"GivenIncrements{tuple(self._increments.shape)}"

    def __call__(self, ta, tb=None, return_U=False, return_A=False):
        if return_U or return_A:
            raise NotImplementedError("Lévy areas of given increments are not known.")
        step = round(float(ta) * self._steps_per_time)
        if round(float(tb) * self._steps_per_time) != step + 1:
            raise ValueError(f"Not a step of the grid: from {ta} to {tb}.")
        return self._increments[step]

    @property
    def dtype(self):
        return self._increments.dtype

    @property
    def device(self):
        return self._increments.device

    @property
    def shape(self):
        return self._increments.shape[1:]

    @property
    def levy_area_approximation(self):
        return "none"


def use_best_num_threads(run: Callable[[], None], *, num_repeats: int = 5) -> int:
    """Set torch to one thread or to all, whichever runs faster, and say which.

    On small problems its threads cost more than they bring.
    """
    seconds = {}
    for num_threads in sorted({1, torch.get_num_threads()}):
        torch.set_num_threads(num_threads)
        run()
        times = []
        for _ in range(num_repeats):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        seconds[num_threads] = statistics.median(times)
    best = min(seconds, key=lambda n: seconds[n])
    torch.set_num_threads(best)
    return best
