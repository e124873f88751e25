"""Training a random function on data: `fit`."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
from jax.sharding import Mesh

from .._files import lock_folder
from .._kinds import check_key, check_kind
from .._mesh import (
    ROWS,
    check_divides,
    check_same,
    checked_mesh,
    cut_here,
    everywhere,
    fingerprint,
    first_writes,
    part_of,
)
from .._tree import on_device
from .._types import PRNGKeyArray, PyTree
from ..functions import (
    AbstractRandomFunction,
    Roughness,
    check_rows_alone,
    with_roughness,
)
from ..likelihood import AbstractLikelihood
from ..network import initial_state
from ._check import (
    check_clip_norm,
    check_data,
    check_decay,
    check_fits,
    check_on_disk,
    check_parts,
    check_positive,
)
from ._elbo import ELBO, AbstractObjective
from ._kl_weight import KLWeight
from ._loop import MAX_STEPS, BatchByBatch, FromDisk, InMemory
from ._nonfinite import AbstractOnNonFinite, Stop, skipped_note
from ._optimiser import Optimiser, Rate, build_optimisation, split_trained
from ._run import Run
from ._schedule import AbstractSchedule, Cosine
from ._session import Session, logger
from ._statistics import recompute_statistics
from ._step import Trainer
from ._validation import Validation
from .ivon import IVON, BoundIVON, LikelihoodGradient
from .records import Callback

_ELBO = ELBO()
_COSINE = Cosine()
_KL = KLWeight()
_STOP = Stop()
_IN_MEMORY_BYTES = 4 * 2**30


class Fit(eqx.Module):
    """A trained random function.

    Attributes:
        model: the random function.
        likelihood: with its learned scale, if it has one.
        state: batch statistics, or `None`.
        history: an array over epochs for each record. `loss` (at the KL weight then
            used) is in nats per example; `elbo` (always at weight 1) equals
            `log_likelihood - kl - local_kl`, in nats per data set, averaged over the
            epoch's steps; `kl_weight`, `learning_rate` and `gradient_snr` are the
            epoch's last; `accuracy` and `ece` are of the training batches, one by one
            as they were met; names that start with `val_` are of the validation split,
            with `val_ema_` of `ema` with batch statistics of its own.
        ema: (model, likelihood) with the running mean of the weights, or `None`.
        epoch: the one that the weights and their mean are of, from 1: the last, or the
            best by its early stopping. `None` of a fit that was not trained here.
        notes: sentences about what its numbers are, such as a bound with a point
            estimate in it.
    """

    model: AbstractRandomFunction
    likelihood: AbstractLikelihood
    state: eqx.nn.State | None
    history: dict[str, np.ndarray]
    ema: tuple[AbstractRandomFunction, AbstractLikelihood] | None = None
    epoch: int | None = None
    notes: tuple[str, ...] = ()

    def averaged(self) -> "Fit":
        """The same fit with the running mean of the weights in place of themselves.

        Raises:
            ValueError: if `fit` was not asked for a running mean.
        """
        if self.ema is None:
            raise ValueError(
                "This fit has no running mean of its weights: call "
                "`fit(..., ema_decay=0.999)`."
            )
        model, likelihood = self.ema
        return dataclasses.replace(self, model=model, likelihood=likelihood, ema=None)

    def with_statistics_of(
        self, x: PyTree, *, key: PRNGKeyArray, batch_size: int = 128
    ) -> "Fit":
        """The same fit with batch statistics computed afresh, in one pass over `x`.

        For weights other than the last: a running mean of them, or a network folded
        from an implicit one. A fit without batch statistics is returned as it is.

        Args:
            x: training inputs, rows first.
            key: of the draws that the statistics are of.
            batch_size: rows in a batch, whose statistics count alike.
        """
        state = recompute_statistics(
            self.model, x, state=self.state, key=key, batch_size=batch_size
        )
        return dataclasses.replace(self, state=state)


def fit(
    model: AbstractRandomFunction,
    split: Any,
    likelihood: AbstractLikelihood,
    *,
    key: PRNGKeyArray,
    num_epochs: int,
    batch_size: int = 128,
    optimiser: Optimiser | IVON | Mapping[str, Optimiser | IVON] = optax.adam,
    learning_rate: Rate | Mapping[str, Rate] = 1e-3,
    schedule: AbstractSchedule | Mapping[str, AbstractSchedule] = _COSINE,
    kl: KLWeight = _KL,
    num_draws: int = 1,
    objective: AbstractObjective = _ELBO,
    accumulate: int = 1,
    draw_per_part: bool = False,
    rematerialise: bool = False,
    clip_norm: float | None = 10.0,
    ema_decay: float | None = None,
    snr_decay: float | None = 0.99,
    augmentation: Callable | None = None,
    regularise_dynamics: Roughness | None = None,
    state: eqx.nn.State | None = None,
    in_memory: bool | None = None,
    on_nonfinite: AbstractOnNonFinite = _STOP,
    validation: Validation | None = None,
    run: Run | None = None,
    mesh: Mesh | None = None,
    callbacks: Sequence[Callback] = (),
) -> Fit:
    r"""Train a random function and its likelihood by stochastic gradients.

    Minimises $-\mathrm{ELBO} / N$ with KL weight $\beta$: see `elbo_loss`. What moves
    is what `model.labels()` and `likelihood.labels()` do not call frozen. Each epoch
    is a fresh shuffle cut into whole batches; the rows left over (fewer than a batch)
    sit that epoch out, so all examples count equally in expectation.

    Args:
        model: the random function.
        split: training data: has `x` and `y`, rows first; or `data.Streamed`, whose
            rows stay on disk.
        likelihood: of `y` given the function's output.
        key: of shuffles, augmentation and draws.
        num_epochs: passes over the data.
        batch_size: examples in a step; clipped to the data, and the log says so.
        optimiser: a rule from a rate to an optimiser, such as `optax.adam`; a
            finished `optax.GradientTransformation`, which carries its own rate (then
            `learning_rate` and `schedule` do not apply); or one for each label, as in
            `{"weights": optax.sgd, "noise": optax.adam}`; or `IVON()` for a
            `MeanField`, which has its own rate and leaves `learning_rate` to points.
        learning_rate: the peak rate; or an optax schedule, used as it is; or one for
            each label.
        schedule: what a peak rate follows over the run, or one for each label.
        kl: how much the KL counts: `KLWeight(1.0, warmup=0.3)` rises to the bound on
            the evidence over three tenths of the steps.
        num_draws: draws of the function in each step.
        objective: `ELBO()`, or `ImportanceWeighted()`, which refuses models and batches
            for which it is no bound.
        accumulate: cut each batch into this many equal parts and add up their
            gradients: the same gradient in less memory. All parts meet the same draw;
            row j of every part shares its noise where rows have their own.
        draw_per_part: each of these parts meets a draw of its own instead, so that
            the gradient has less of the draws' noise.
        rematerialise: recompute in the backward pass instead of storing.
        clip_norm: largest global norm of the gradient of the loss per example. 10 is
            a guard against spikes that a fit rarely meets. `None` for none.
        ema_decay: keep a running mean of the weights, in `Fit.ema`; early stopping
            then judges, and keeps, the mean.
        snr_decay: of the running moments behind `gradient_snr`: the mean over a
            label's entries of |mean| / standard deviation of the gradient. `None`
            saves two passes over the parameters a step.
        augmentation: `(x, *, key)` to an augmented batch of inputs.
        regularise_dynamics: add $R_K$ of the solves to the loss, so that fewer steps
            (or a looser tolerance) will do afterwards: `Roughness(weight=0.01)`.
        state: batch statistics to start from, for a model that has them; by default
            those that it was made with, `eqx.nn.State(model)`.
        in_memory: `True`: data on the device and many steps in one compiled call.
            `False`: batch by batch from numpy, the same numbers; also faster on a CPU
            for networks with Equinox's own convolutions, whose gradients are slow
            inside a compiled loop. `None`: in memory unless the data are a memory map
            or larger than 4 GiB. Not of `data.Streamed`.
        on_nonfinite: what to do at a batch whose loss or gradient is not a number:
            `Stop()`, or `Skip(10)`, which passes over that many in a row and counts
            them.
        validation: held-out rows to judge epochs by, and when to stop:
            `Validation(held, early_stopping=EarlyStopping(patience=10))`.
        run: where metrics, events and checkpoints go, or go on:
            `Run(RunFolder.create("runs/a", {}))`. Of several processes that share
            `mesh` the first alone reads and writes it.
        mesh: several devices that share the work, as in `jax.make_mesh((4, 2), ("data",
            "fsdp"))`: `data` shares the rows of each batch, `fsdp` rows and the
            parameters. The numbers are those of one device but for rounding.
        callbacks: hear about the run; `ProgressBar(console)` for instance.

    Returns:
        The trained model and likelihood, and what was recorded.

    Raises:
        ValueError: for arguments or data that cannot work.
        NonFiniteError: if the loss or its gradient stops being a number, or does so
            for more batches in a row than may be skipped. The last good checkpoint
            stays.
        DataError: if rows on disk are not what they were. All steps before are in the
            checkpoint.
        FileExistsError: if the run has checkpoints and `resume` is false.
        CheckpointError: if all checkpoints are damaged, or of another run.
        BlockingIOError: if another process or thread is at work in the run's folder.
        MemoryError: if a step does not fit into memory, naming what needs less.
        OSError: if the disk is full, naming the file; the run goes on from the last
            checkpoint as after any interruption.
    """
    check_positive(
        num_epochs=num_epochs,
        batch_size=batch_size,
        num_draws=num_draws,
        accumulate=accumulate,
    )
    remedy = "`orn.MeanField(network, prior)`, or `orn.Deterministic(network)`"
    check_kind("model", model, AbstractRandomFunction, remedy)
    write = "orn.Gaussian(0.1) or orn.Categorical()"
    check_kind("likelihood", likelihood, AbstractLikelihood, write)
    check_key(key)
    check_kind("kl", kl, KLWeight, "`kl=orn.KLWeight(...)`")
    mesh = checked_mesh(mesh, ROWS, "fit")
    remedy = "`on_nonfinite=orn.train.Skip(10)`"
    check_kind("on_nonfinite", on_nonfinite, AbstractOnNonFinite, remedy)
    if validation is not None:
        check_kind("validation", validation, Validation, "`orn.Validation(...)`")
    if run is not None:
        check_kind("run", run, Run, "`run=orn.Run(...)`")
    check_decay("ema_decay", ema_decay)
    check_decay("snr_decay", snr_decay)
    check_clip_norm(clip_norm)
    check_parts(objective, num_draws, accumulate, draw_per_part)
    if isinstance(optimiser, IVON):
        optimiser.check(model, objective, kl)
    on_disk = check_on_disk(split, in_memory=in_memory)
    data = check_data(split if on_disk is None else on_disk.in_memory(), "split")
    state = initial_state(model) if state is None else state
    num_data = _num_rows(data) if on_disk is None else len(on_disk)
    check_same(
        mesh,
        "fit",
        lambda: {
            "split": [fingerprint(data), None if on_disk is None else on_disk.order],
            "key": fingerprint(key),
            "num_epochs": num_epochs,
            "batch_size": batch_size,
            "model": eqx.tree_pformat(model),
            "likelihood": eqx.tree_pformat(likelihood),
            "run": None if run is None else ("to resume" if run.resume else "new"),
        },
    )
    if batch_size > num_data:
        logger.info("batch_size=%d clipped to the %d rows", batch_size, num_data)
        batch_size = num_data
    if batch_size % accumulate:
        raise ValueError(
            f"A batch of {batch_size} cannot be cut into accumulate={accumulate} equal "
            "parts: choose a batch size that it divides."
        )
    num_rows = batch_size // accumulate
    several = {"times": accumulate, "most": num_data}
    check_divides(mesh, ROWS, "batch_size", batch_size, **several)
    if regularise_dynamics is not None:
        with_roughness(model, regularise_dynamics.order)  # refuses what cannot be
    draw = check_fits(model, likelihood, data, state, num_rows)
    batch = jax.tree.map(lambda leaf: leaf[:num_rows], data[0])
    check_rows_alone(model, batch, state)
    terms = tuple(sorted(draw.terms | draw.local_terms))
    objective.check(draw.log_ratio, num_rows=num_rows, num_data=num_data)
    if validation is not None:
        check_fits(model, likelihood, validation.data, state, num_rows)
    steps_per_epoch = num_data // batch_size
    if on_disk is not None:
        num_parts = part_of(mesh)[1]
        steps_per_epoch = on_disk.steps_per_epoch(batch_size, num_parts=num_parts)
    num_steps = num_epochs * steps_per_epoch
    model_labels, rule = model.labels(), optimiser
    notes = model.posterior_parts().notes
    if isinstance(rule, IVON):
        notes, size = (*notes, *rule.notes()), num_data / kl.weight
        rule = BoundIVON(rule, model, size, steps_per_epoch)
        model, model_labels = rule.started(), rule.labels()
        objective = LikelihoodGradient()
    params, frozen, labels = split_trained(
        (model, likelihood), (model_labels, likelihood.labels())
    )
    trainer = Trainer(
        frozen=frozen,
        labels=labels,
        optimisation=build_optimisation(
            labels,
            rule,
            learning_rate=learning_rate,
            schedule=schedule,
            num_steps=num_steps,
        ),
        objective=objective,
        kl=kl,
        num_data=num_data,
        num_steps=num_steps,
        steps_per_epoch=steps_per_epoch,
        num_draws=num_draws,
        accumulate=accumulate,
        draw_per_part=draw_per_part,
        rematerialise=rematerialise,
        clip_norm=clip_norm,
        ema_decay=ema_decay,
        snr_decay=snr_decay,
        augmentation=augmentation,
        terms=terms,
        has_energy=draw.energy is not None,
        regularise_dynamics=regularise_dynamics,
        on_nonfinite=on_nonfinite,
    )
    if on_disk is not None:
        loop = FromDisk(trainer=trainer, data=on_disk, mesh=mesh)
    elif _keeps_in_memory(data) if in_memory is None else in_memory:
        held = everywhere(on_device(data), mesh)
        num_at_once = min(num_steps, MAX_STEPS)
        loop = InMemory(trainer=trainer, data=held, max_steps=num_at_once, mesh=mesh)
    else:
        loop = BatchByBatch(trainer=trainer, data=data, mesh=mesh)
    session = Session(
        trainer=trainer,
        loop=loop,
        batch_size=batch_size,
        key=key,
        inputs=data[0],
        validation=validation,
        run=run,
        callbacks=callbacks,
        start=trainer.init(cut_here(params, mesh), state),
        started=time.monotonic(),
    )
    with contextlib.ExitStack() as stack:
        if run is not None:
            alone = lock_folder(run.folder.path)
            first_writes(mesh, lambda: stack.enter_context(alone) or b"")
            session.resume() if run.resume else session.refuse_used_run()
        found = session.train()
    model, likelihood = trainer.combine(found.params)
    ema = None if found.ema is None else trainer.combine(found.ema)
    history = session.history.arrays()
    if num_skipped := session.history.num_skipped:
        notes = (*notes, skipped_note(num_skipped, session.history.num_steps))
    return Fit(model, likelihood, found.model_state, history, ema, found.epoch, notes)


def _keeps_in_memory(data: PyTree) -> bool:
    leaves = jax.tree.leaves(data)
    if any(isinstance(leaf, np.memmap) for leaf in leaves):
        return False
    return sum(leaf.nbytes for leaf in leaves) <= _IN_MEMORY_BYTES


def _num_rows(data: PyTree) -> int:
    return jax.tree.leaves(data)[0].shape[0]
