"""One run of training: steps, records, validation, checkpoints, until it ends."""

import contextlib
import logging
import math
import re
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from .._gather import gathered, on_host
from .._memory import room_for
from .._mesh import agreed, first_reads, first_writes, part_of, writes
from .._sentence import Choice, Sentence
from .._tree import on_device
from .._types import PRNGKeyArray, PyTree
from ._check import describe_failure
from ._early_stopping import Best
from ._errors import NonFiniteError
from ._loop import MAX_STEPS, AbstractLoop, Feed, FromDisk
from ._run import Run
from ._statistics import recompute_statistics
from ._step import Trainer, TrainState
from ._validate import validate
from ._validation import Validation
from .records import Callback, EventsFile, History, MetricsFile, Plan, StepRecord
from .saving import (
    checkpoints,
    load_checkpoint,
    named_arrays,
    refuse_non_finite,
    save_checkpoint,
    with_arrays,
)

logger = logging.getLogger("ornstein")

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_SPARING = Sentence(
    "lower {batch_size} or {num_draws}, cut each batch with {accumulate}, or recompute "
    "with {rematerialise} (of solves {})",
    Choice("`gradient=Checkpointed()`", "{gradient} checkpointed"),
)


class Trained(NamedTuple):
    """An epoch's outcome.

    Attributes:
        params: of (model, likelihood).
        model_state: batch statistics, or `None`.
        ema: running mean of the parameters, or `None`.
        epoch: its number, from 1.
    """

    params: PyTree
    model_state: eqx.nn.State | None
    ema: PyTree | None
    epoch: int


def judged_by(names: Iterable[str]) -> str:
    """The record that decides between epochs: of the weights that will be used."""
    return "val_ema_nll" if "val_ema_nll" in names else "val_nll"


class Session:
    """A run under way: what `fit` drives.

    Everything random is a function of the key and the step number, so a session that
    is resumed from a checkpoint meets the same batches and draws.
    """

    def __init__(
        self,
        *,
        trainer: Trainer,
        loop: AbstractLoop,
        batch_size: int,
        key: PRNGKeyArray,
        inputs: PyTree,
        validation: Validation | None,
        run: Run | None,
        callbacks: Sequence[Callback],
        start: TrainState,
        started: float,
    ):
        self.trainer, self.loop = trainer, loop
        self.inputs, self.validation = inputs, validation
        self.run = run
        # Of several processes the first alone has files.
        has_files = run is not None and writes(loop.mesh)
        self.folder = run.folder if run is not None and has_files else None
        self.save_every = math.inf if run is None else run.checkpoint_every
        self.batch_size = batch_size
        self.shuffle_key, self.step_key, self.held_key = jax.random.split(key, 3)
        self.callbacks: list[Callback] = [*callbacks]
        if self.folder is not None:
            own = [MetricsFile(self.folder.metrics), EventsFile(self.folder.events)]
            self.callbacks = [*own, *callbacks]
        self.state = loop.place(start)
        model, _ = trainer.combine(start.params)
        self.has_bound = model.posterior_parts().has_bound
        self.started = started
        self.history = History(
            trainer.no_record(),
            trainer.steps_per_epoch,
            counts_skipped=trainer.skips_nonfinite,
        )
        self.num_in_a_row = 0  # steps until now that were not finite
        mean = None if trainer.ema_decay is None else start.params
        like = on_host((start.params, start.model_state, mean), loop.mesh)
        rule = None if validation is None else validation.early_stopping
        self.best = None if rule is None else Best(rule, like)
        self.stopped = False
        self.is_between_steps = False  # when interrupted, a checkpoint loses nothing
        # What a checkpoint must agree on with the run that goes on from it.
        self.identity = {
            "num_steps": trainer.num_steps,
            "num_data": trainer.num_data,
            "batch_size": batch_size,
            "key": np.asarray(jax.random.key_data(key)).tolist(),
            # Activations, steps, priors: all but its arrays, which have shapes to tell.
            "model": _ADDRESS.sub("", eqx.tree_pformat(trainer.frozen)),
        }
        if isinstance(loop, FromDisk):
            num_parts = part_of(loop.mesh)[1]
            shared = f", by {num_parts} processes" if num_parts > 1 else ""
            self.identity["order"] = loop.data.order + shared

    def refuse_used_run(self) -> None:
        """Refuse to train into a run that was trained already."""
        assert self.run is not None
        folder = self.run.folder

        def check() -> bytes:
            if checkpoints(folder.checkpoints):
                raise FileExistsError(
                    f"{folder.path} has checkpoints of an earlier run: pass "
                    "resume=True to go on from them, or choose another folder."
                )
            return b""

        first_writes(self.loop.mesh, check)

    def resume(self) -> None:
        """Go on from the newest checkpoint; from the start if there is none yet."""
        assert self.run is not None
        folder, like = self.run.folder, self._tree()

        def read() -> tuple[dict[str, np.ndarray], Any] | None:
            if not checkpoints(folder.checkpoints):
                return None
            tree, meta = load_checkpoint(
                folder.checkpoints, like, identity=self.identity
            )
            refuse_non_finite(
                folder.checkpoints,
                named_arrays(tree[0].params),
                like=named_arrays(like[0].params),
            )
            return named_arrays(tree), meta

        found = first_reads(self.loop.mesh, read)
        if found is None:
            logger.warning("%s has no checkpoint yet: from the start", folder.path)
            return
        arrays, meta = found
        state, best = with_arrays(like, arrays)
        if state.ema is not None and "is_mean" not in meta:
            state = self.trainer.without_start(state)
        self.state = self.loop.place(state)
        self.history.load_json(meta["history"])
        if self.best is not None:
            self.best.load_json(meta["best"], best)
        self.stopped = meta["stopped"]
        self.num_in_a_row = meta.get("num_in_a_row", 0)
        self.started = time.monotonic() - meta["seconds"]
        logger.info("resumed %s at step %d", folder.path, self.history.num_steps)

    def train(self) -> Trained:
        """Train to the end; give the last epoch, or the best if that was asked for."""
        plan = Plan(
            num_epochs=self.trainer.num_steps // self.trainer.steps_per_epoch,
            num_steps=self.trainer.num_steps,
            first_step=self.history.num_steps,
            num_data=self.trainer.num_data,
            batch_size=self.batch_size,
            num_parameters=sum(p.size for p in jax.tree.leaves(self.state.params)),
            records=self.history.records,
            has_bound=self.has_bound,
        )
        with contextlib.ExitStack() as stack:
            for callback in self.callbacks:
                stack.callback(callback.stop)
                callback.start(plan)
            feed = self.loop.feed(
                self.trainer.num_data,
                self.batch_size,
                key=self.shuffle_key,
                start=self.history.num_steps,
            )
            stack.callback(feed.close)
            try:
                self._train(Feed(feed))
            except KeyboardInterrupt:
                if self.is_between_steps:
                    self._save()
                raise
        if self.best is not None and self.best.found:
            return Trained(*on_device(self.best.params), self.best.epoch)
        return Trained(*on_device(self._kept()), len(self.history.records))

    def _kept(self) -> tuple[PyTree, eqx.nn.State | None, PyTree | None]:
        """What is returned of an epoch."""
        ema = None
        if self.trainer.ema_decay is not None:
            ema = self.state.ema
        kept = self.state.params, self.state.model_state, ema
        return on_host(kept, self.loop.mesh)

    def _train(self, feed: Feed) -> None:
        step = self.history.num_steps
        self._save()
        self.is_between_steps = True
        num_next = 1  # compiles, and shows the first loss
        while step < self.trainer.num_steps and not self.stopped:
            num_taken = min(num_next, self._steps_to_boundary(step))
            begin = time.monotonic()
            self.is_between_steps = False
            with room_for("a step of training", _SPARING):
                self.state, records = self.loop.run(
                    self.state, feed, num_taken, key=self.step_key
                )
            took = time.monotonic() - begin
            if feed.failure is not None:
                num_taken = records.num_steps
                if num_taken == 0:  # all steps before are in the history
                    self._save()
                    raise feed.failure
            self._check_finite(step, records)
            if step == 0:
                self._report_first(records.at(0))
            step += num_taken
            completed = self.history.add(records, time.monotonic() - self.started)
            self._tell(step, records.at(-1), completed)
            # Grown gently, as the first call also compiled.
            num_fitting = int(self.loop.call_seconds / max(took / num_taken, 1e-6))
            num_next = max(1, min(num_fitting, 8 * num_next, MAX_STEPS))
            is_due = time.monotonic() - self.saved >= self.save_every
            decided = agreed(self.loop.mesh, num_next, is_due, self.stopped)
            num_next, (is_due, self.stopped) = decided[0], map(bool, decided[1:])
            if is_due:
                self._save()
        self._save()

    def _steps_to_boundary(self, step: int) -> int:
        """Steps to the end of the run, or to the next validation."""
        to_end = self.trainer.num_steps - step
        if self.validation is None:
            return to_end
        period = self.validation.every * self.trainer.steps_per_epoch
        return min(to_end, period - step % period)

    def _tell(self, step: int, last: StepRecord, completed: list[dict]) -> None:
        """Validate if it is time, and tell the callbacks."""
        is_boundary = completed and completed[-1]["step"] == step
        if self.validation is not None and is_boundary:
            epoch = completed[-1]["epoch"]
            is_last = step == self.trainer.num_steps
            if epoch % self.validation.every == 0 or is_last:
                completed[-1] |= self._validate(self.validation, epoch)
        self.is_between_steps = True
        for callback in self.callbacks:
            callback.advance(step, self.history.so_far(last))
            for record in completed:
                callback.epoch(record)

    def _validate(self, validation: Validation, epoch: int) -> dict[str, float]:
        """Scores of the weights and, apart, of their running mean."""
        versions = {"val_": self.state.params}
        if self.trainer.ema_decay is not None:
            versions["val_ema_"] = self.state.ema
        versions, state = gathered((versions, self.state.model_state), self.loop.mesh)
        record = {}
        for prefix, params in versions.items():
            if prefix == "val_ema_":  # the steps' statistics are of the weights
                state = recompute_statistics(
                    self.trainer.combine(params)[0],
                    self.inputs,
                    key=self.held_key,
                    state=state,
                    batch_size=self.batch_size,
                    max_batches=64,  # of a long epoch they tell as much
                )
            scores = validate(
                *self.trainer.combine(params),
                validation.data,
                key=self.held_key,  # the same draws each time: epochs compare better
                num_draws=validation.num_draws,
                state=state,
            )
            record |= {prefix + name: value for name, value in scores.items()}
        trainer, last = self.trainer, self.history.num_steps - 1
        # What was fitted in the warm-up predicts well by a KL that hardly counts.
        if self.best is not None and trainer.kl.is_full(last, trainer.num_steps):
            nll = record[judged_by(record)]
            self.stopped = self.best.update(epoch, nll, self._kept())
        return record

    def _tree(self) -> PyTree:
        best = None if self.best is None else self.best.params
        return on_host(self.state, self.loop.mesh), best

    def _save(self) -> None:
        tree = self._tree()
        self._check_params(tree[0])
        self.saved = time.monotonic()
        if self.folder is None:
            return
        meta: dict[str, Any] = {
            "identity": self.identity,
            "history": self.history.to_json(),
            "best": None if self.best is None else self.best.to_json(),
            "stopped": self.stopped,
            "is_mean": True,  # the running mean of weights, as it is in the state
            "num_in_a_row": self.num_in_a_row,
            "seconds": time.monotonic() - self.started,
        }
        step = self.history.num_steps
        save_checkpoint(self.folder.checkpoints, step, tree, meta)

    def _check_finite(self, step: int, records: StepRecord) -> None:
        """Stop at a step that is not finite, or at one too many in a row."""
        most = self.trainer.on_nonfinite.most_in_a_row
        in_a_row = []
        for is_finite in records.is_finite(np):
            self.num_in_a_row = 0 if is_finite else self.num_in_a_row + 1
            in_a_row.append(self.num_in_a_row)
        if max(in_a_row) <= most:
            return
        first = in_a_row.index(most + 1)
        record, failed = records.at(first).by_name(), step + first
        cause = describe_failure(record, ("log_likelihood", "kl", "local_kl"))
        rates = ", ".join(
            f"{name} {record[name]:.3g}"
            for name in record
            if name.startswith("learning_rate")
        )
        after = f" after {most} that were skipped in a row" if most else ""
        raise NonFiniteError(
            f"Training stopped at step {failed} (epoch "
            f"{failed // self.trainer.steps_per_epoch + 1}, {rates or 'own rate'})"
            f"{after}: {cause}; {self._last_good()}."
        )

    def _check_params(self, state: TrainState) -> None:
        """Refuse what the last step made of them, which no further one has met."""
        num_steps = self.history.num_steps
        for name, array in named_arrays(state.params).items():
            is_number = jax.numpy.issubdtype(array.dtype, np.floating)
            if num_steps and is_number and not np.isfinite(array).all():
                raise NonFiniteError(
                    f"Step {num_steps - 1} left numbers in {name} that are not finite: "
                    f"use a lower learning rate; {self._last_good()}."
                )

    def _last_good(self) -> str:
        if self.folder is None:
            return "no checkpoint was asked for"
        return f"the last good checkpoint is {checkpoints(self.folder.checkpoints)[-1]}"

    def _report_first(self, first: StepRecord) -> None:
        """Say on which scales the run begins: a wrong one shows here."""
        record = first.by_name()
        num_data = self.trainer.num_data
        fit = record["loss"], record["log_likelihood"] / num_data
        words = "step 0: loss %.4g nats per example; log likelihood %.4g per example"
        if not (self.has_bound or record["kl"]):  # points without a prior
            logger.info(words, *fit)
            return
        energy = record.get("energy")
        logger.info(
            f"{words}, %s %.4g per data set of %d (%.3g per example%s), KL weight %.3g",
            *fit,
            "KL" if self.has_bound else "energy of the prior",
            record["kl"],
            num_data,
            (record["kl"] + record["local_kl"]) / num_data,
            "" if energy is None else f"; energy of points {energy / num_data:.3g}",
            record["kl_weight"],
        )
