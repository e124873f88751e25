"""Chains under way: what `run_chains` drives."""

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._gather import gathered
from .._memory import room_for
from .._mesh import agreed, first_reads, put
from .._sentence import Sentence
from .._types import Array, PyTree
from ..data import DataError
from ..functions import split_r_hat
from ..mcmc import AbstractState, warm_up_stages
from ..train import NonFiniteError
from ._advance import DeviceSamples, Sampler
from ._burn_in import BurnIn, has_noise_ratio, noise_ratios
from ._callback import SamplingCallback, SamplingPlan
from ._from_disk import FromDisk
from ._noise_limit import NoiseLimit, StepControl, calmer, final
from ._progress import Progress, load_progress, save_progress
from ._running import RunningPrediction, since_stored
from ._store import Checksums, add_checksums, flush, no_checksums

_CALL_SECONDS = 1.0
"""How long a call should take: progress, files and Ctrl-C come between calls."""
_BUFFER_BYTES = 2**27
"""Room for samples on the device, from one call to the next."""
_RATIO_STEP = 2**31 - 1
"""The number of no step: its randomness is that of the rows behind noise ratios."""
_SPARING = Sentence(
    "run fewer chains ({num_chains}), lower {batch_size} where the kernel has one, or "
    "sample a smaller network"
)
_WATCHED = 32
"""Numbers whose R-hat is shown while chains run."""
_WATCHED_SAMPLES = 1000
"""Of each chain, at most, evenly: all of them would be read from disk every second."""


class Run:
    """Chains between their start and their end.

    Args:
        sampler: the chains' kernel, potential and keys.
        steps: takes their steps: the sampler, or what reads rows for it.
        states: of the chains.
        arrays: where samples go: (position, info) with chains and samples first; `None`
            where another process that shares the mesh has them.
        plan: what is to be done.
        burn_in: ends the warm-up early, or `None`.
        noise_limit: lowers the step size in the warm-up, or `None`.
        folder: of the samples and of the states to go on from, or `None`.
        save_every: seconds from one such state to the next.
        running: sums up what samples predict, or `None`.
        callbacks: hear about it.
    """

    def __init__(
        self,
        *,
        sampler: Sampler,
        steps: Sampler | FromDisk,
        states: AbstractState,
        arrays: tuple[PyTree, dict[str, np.ndarray]] | None,
        plan: SamplingPlan,
        burn_in: BurnIn | None,
        noise_limit: NoiseLimit | None,
        folder: Path | None,
        save_every: float,
        running: RunningPrediction | None,
        callbacks: Sequence[SamplingCallback],
    ):
        self.sampler, self.steps = sampler, steps
        self.states, self.arrays = states, arrays
        self.plan, self.burn_in, self.callbacks = plan, burn_in, callbacks
        self.control = None
        if noise_limit is not None:
            self.control = StepControl(noise_limit, sampler, states)
        self.folder, self.save_every = folder, save_every
        self.saved = time.monotonic()
        self.step = 0
        self.running = running
        self.num_kept = 0
        self.num_divergent = 0
        self.chain_info: dict[str, np.ndarray] = {}
        self.pending_info: dict[str, np.ndarray] = {}
        self.checksums: Checksums = [] if arrays is None else no_checksums(arrays)
        self.num_next = 1  # compiles
        self.is_between_steps = False  # when interrupted, saving loses nothing

    def resume(self) -> None:
        """Go on from the saved states; from the start if there are none yet."""
        assert self.folder is not None
        folder, arrays = self.folder, self.arrays
        like = self._saved()

        def read() -> tuple[dict[str, np.ndarray], Any] | None:
            assert arrays is not None
            found = load_progress(folder, arrays, like)
            if found is None:
                return None
            leaves = enumerate(jax.tree.leaves(found[0]))
            return {f"{i}": np.asarray(a) for i, a in leaves}, found[1].to_json()

        found = first_reads(self.sampler.mesh, read)
        if found is None:
            return
        saved = jax.tree.unflatten(jax.tree.structure(like), found[0].values())
        states = saved if self.running is None else saved[0]
        if self.running is not None:
            self.running.sums = dict(saved[1])
        progress = Progress.from_json(found[1])
        put_back = lambda a, like: put(a, like.sharding)
        self.states = jax.tree.map(put_back, states, self.states)
        self.step, self.num_kept = progress.step, progress.num_kept
        self.num_divergent = progress.num_divergent
        self.pending_info = progress.pending_info
        self.chain_info, self.checksums = progress.chain_info, progress.checksums
        if self.control is not None:
            self.control.load(self.chain_info)
            self._use(self.control.sampler)

    def go(self) -> None:
        """Run the chains to their end."""
        with contextlib.ExitStack() as stack:
            for callback in self.callbacks:
                stack.callback(callback.stop)
                callback.start(self.plan._replace(first_step=self.step))
            try:
                with room_for("the chains", _SPARING):
                    self._warm_up()
                    self._draw()
            except KeyboardInterrupt:
                if self.is_between_steps:
                    self._save(is_due=True)
                raise
            except DataError:  # of rows on disk, with the states before it
                self._save(is_due=True)
                raise

    def _warm_up(self) -> None:
        if "num_warmup" in self.chain_info:
            return  # resumed after it
        num_warmup = self.plan.num_warmup
        stages = warm_up_stages(max(num_warmup, 1))
        # Resumed chains may have been interrupted right after their burn-in.
        is_over = self.step > 0 and self._is_burnt_in()
        while self.step < num_warmup and not is_over:
            num = min(self.num_next, num_warmup - self.step)
            if self.burn_in is not None:
                every = self.burn_in.check_every
                num = min(num, every - self.step % every)
            if self.control is not None:
                due = self.control.rule.next_check(self.step, num_warmup)
                num = min(num, due - self.step)
            begin = time.monotonic()
            self.is_between_steps = False
            states, info = self.steps.warm_up(
                self.states, stages, _int(self.step), _int(num)
            )
            info = gathered(by_name(info), self.sampler.mesh)
            info = {name: np.asarray(a) for name, a in info.items()}
            try:
                self._check_finite(states.position, info, "warm-up")
            except NonFiniteError:
                if not self._starts_again():
                    raise
                continue
            self.states = states
            self.step += num
            self._grow(num, time.monotonic() - begin)
            self._control_step()
            is_over = self._is_burnt_in()
            self._tell("warm-up", info)
            self._save()
        chains = np.ones(self.plan.num_chains)
        self.chain_info = final(self.chain_info)
        self.chain_info |= {"num_warmup": (self.step * chains).astype(int)}
        if has_noise_ratio(self.sampler.kernel):
            self.chain_info["noise_ratio"] = self._noise_ratios()
        self.num_next = 1

    def _is_burnt_in(self) -> bool:
        rule = self.burn_in
        if rule is None or self.step % rule.check_every or self.step < rule.min_steps:
            return False
        if self.step == 0:  # chains that were lost have just started again
            return False
        return bool(np.all(self._noise_ratios() < rule.threshold))

    def _noise_ratios(self) -> np.ndarray:
        key = jax.random.fold_in(self.sampler.keys[0], _RATIO_STEP)
        return noise_ratios(self.sampler, self.states, key=key)

    def _control_step(self) -> None:
        """Fit the step size to the noise where it is time to look."""
        control = self.control
        if control is None or not control.rule.is_due(self.step, self.plan.num_warmup):
            return
        if not (control.is_lost(self.states) and self._starts_again()):
            key = jax.random.fold_in(self.sampler.keys[0], _RATIO_STEP)
            is_early = self.step < self.plan.num_warmup / 2
            self.states = control.fitted(self.states, key, is_early=is_early)
            self._use_control()

    def _starts_again(self) -> bool:
        """Start once more in smaller steps, if that is allowed."""
        states = None if self.control is None else self.control.starts_again()
        if states is None:
            return False
        self.states, self.step, self.num_next = states, 0, 1
        self._use_control()
        return True

    def _use_control(self) -> None:
        assert self.control is not None
        self._use(self.control.sampler)
        self.chain_info |= self.control.saved(self.plan.num_chains)

    def _use(self, sampler: Sampler) -> None:
        self.sampler = sampler
        if isinstance(self.steps, FromDisk):
            self.steps.sampler = sampler
        else:
            self.steps = sampler

    def _draw(self) -> None:
        plan, starts = self.plan, jax.tree.leaves(self.states.position)
        sample_bytes = sum(a.nbytes for a in starts)
        capacity = max(1, min(plan.num_samples, _BUFFER_BYTES // sample_bytes))
        while self.num_kept < plan.num_samples:
            num = min(self.num_next, capacity, plan.num_samples - self.num_kept)
            begin = time.monotonic()
            self.is_between_steps = False
            states, next_step, kept = self.steps.draw(
                self.states,
                _int(self.step),
                _int(num),
                _int(plan.thin),
                capacity=capacity,
            )
            new = DeviceSamples(kept.position, by_name(kept.info))
            new = gathered(new, self.sampler.mesh)
            new = jax.tree.map(lambda a, n=num: np.asarray(a)[:n].swapaxes(0, 1), new)
            self._check_finite(new.position, new.info, "sampling")
            self._store(new)
            self.states = states
            self.step = int(next_step)
            self.num_kept += num
            self.num_divergent += int(np.sum(new.info.get("is_divergent", 0)))
            self._grow(num, time.monotonic() - begin)
            self._tell("sampling", new.info)
            self._save()

    def _store(self, new: DeviceSamples) -> None:
        """Put some more samples of each chain where they go."""
        if self.running is not None:
            self.running.add(new.position)
            every = self.running.store_every
            # Of every so many the last: those that would be thinned to.
            first = (every - 1 - self.num_kept) % every
            position = jax.tree.map(lambda a: a[:, first::every], new.position)
            info, self.pending_info = since_stored(
                self.pending_info, new.info, first, every
            )
            new = DeviceSamples(position, info)
        if self.arrays is None:
            return
        num_new = jax.tree.leaves(new)[0].shape[1]
        rows = slice(self.num_stored, self.num_stored + num_new)
        for array, part in zip(
            jax.tree.leaves(self.arrays), jax.tree.leaves(new), strict=True
        ):
            array[:, rows] = part
        self.checksums = add_checksums(self.checksums, new)

    @property
    def num_stored(self) -> int:
        """Of the samples that each chain has kept, those in the arrays."""
        every = 1 if self.running is None else self.running.store_every
        return self.num_kept // every

    def _saved(self) -> PyTree:
        """What a state to go on from has."""
        states = gathered(self.states, self.sampler.mesh)
        return states if self.running is None else (states, self.running.sums)

    def _grow(self, num: int, seconds: float) -> None:
        """Longer calls, gently, as the first one also compiled."""
        num_fitting = int(_CALL_SECONDS / max(seconds / num, 1e-6))
        num = max(1, min(num_fitting, 8 * self.num_next))
        (self.num_next,) = agreed(self.sampler.mesh, num)

    def _tell(self, phase: str, info: dict[str, np.ndarray]) -> None:
        record: dict[str, Any] = {
            "phase": phase,
            "num_kept": self.num_kept,
            "num_divergent": self.num_divergent,
        }
        for name in ("acceptance_rate", "step_size"):
            if name in info:
                record[name] = float(np.mean(info[name]))
        if self.callbacks and self.arrays is not None and self.num_stored >= 8:
            record["r_hat"] = self._watched_r_hat()
        self.is_between_steps = True
        for callback in self.callbacks:
            callback.advance(self.step, record)

    def _watched_r_hat(self) -> float:
        assert self.arrays is not None
        leaves = jax.tree.leaves(self.arrays[0])
        each = -(-_WATCHED // len(leaves))
        largest = []
        for leaf in leaves[:_WATCHED]:
            flat = leaf.reshape(*leaf.shape[:2], -1)
            stride = -(-self.num_stored // _WATCHED_SAMPLES)
            some = flat[:, : self.num_stored : stride, :: max(1, flat.shape[2] // each)]
            largest.append(np.max(split_r_hat(np.asarray(some))))
        return float(np.max(largest))

    def _save(self, *, is_due: bool = False) -> None:
        is_due |= self.num_kept == self.plan.num_samples
        is_due |= time.monotonic() - self.saved >= self.save_every
        is_due = bool(agreed(self.sampler.mesh, is_due)[0])
        if self.folder is None or not is_due:
            return
        saved = self._saved()
        if self.arrays is None:
            self.saved = time.monotonic()
            return
        flush(self.arrays)  # before the state that says that they are there
        progress = Progress(
            self.step,
            self.num_kept,
            self.num_stored,
            self.num_divergent,
            self.chain_info,
            self.checksums,
            self.pending_info,
        )
        save_progress(self.folder, saved, progress)
        self.saved = time.monotonic()

    def _check_finite(self, positions: PyTree, info: dict, phase: str) -> None:
        for leaf in jax.tree.leaves(gathered(positions, self.sampler.mesh)):
            finite = np.isfinite(np.asarray(leaf)).reshape(leaf.shape[0], -1)
            if np.all(finite):
                continue
            chain = int(np.argmin(np.all(finite, axis=1)))
            size = ""
            if "step_size" in info:
                size = f" (step size {float(np.ravel(info['step_size'])[0]):.3g})"
            kept = f"the {self.num_kept} samples of each chain before it are lost"
            if self.folder is not None:
                self._save(is_due=True)
                kept = f"the {self.num_kept} before it are in {self.folder}"
            raise NonFiniteError(
                f"Chain {chain} left the finite numbers in the {phase} after step "
                f"{self.step}{size}: {calmer(self.sampler.kernel)}; {kept}."
            )


def by_name(info: PyTree) -> dict[str, Any]:
    """The leaves of a kernel's info."""
    leaves = jax.tree_util.tree_leaves_with_path(info)
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): leaf
        for path, leaf in leaves
    }


def _int(number: int) -> Array:
    return jnp.asarray(number, jnp.int32)
