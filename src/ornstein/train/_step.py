"""One optimisation step: gradient, clipping, update, and what is worth recording."""

import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from .._tree import copied
from .._types import Array, Float, Int, PRNGKeyArray, PyTree, RealScalar
from ..functions import Roughness
from ..likelihood import AbstractClassLikelihood
from ._elbo import AbstractObjective, elbo_loss
from ._kl_weight import KLWeight
from ._nonfinite import AbstractOnNonFinite, Stop
from ._optimiser import Optimisation, state_after_skip
from .records import NUM_BINS, LossRecord, StepRecord, calibration_sums


class TrainState(eqx.Module):
    """All that a step changes, and all that a checkpoint must hold.

    Attributes:
        params: trained leaves of (model, likelihood); `None` in place of the others.
        opt_state: the optimiser's.
        model_state: batch statistics, or `None`.
        moments: running means of the gradient and of its square, or `None`.
        ema: running mean of the parameters after each step, or `None`.
        step: how many steps were taken.
    """

    params: PyTree
    opt_state: PyTree
    model_state: eqx.nn.State | None
    moments: tuple[PyTree, PyTree] | None
    ema: PyTree | None
    step: Int[Array, ""]


class Trainer(eqx.Module):
    """What a step needs and never changes.

    Attributes:
        frozen: (model, likelihood) with `None` in place of trained leaves.
        labels: of the trained leaves.
        optimisation: what moves them.
        objective: of the draws.
        kl: how much the KL counts, over the run and over an epoch's batches.
        num_data: examples in the data set.
        num_steps: in the run.
        steps_per_epoch: whole batches in the data set.
        num_draws: for each training index.
        accumulate: equal parts into which a batch is cut.
        draw_per_part: whether each of those has its own draw.
        rematerialise: whether draws are recomputed in the backward pass.
        clip_norm: largest global norm of the gradient, or `None`.
        ema_decay: of the running mean of the parameters, or `None` for none.
        snr_decay: of the gradient's running moments, or `None` for none.
        augmentation: `(x, *, key)` to an augmented x, or `None`.
        terms: names of the parts of the model's KL.
        has_energy: whether points beside what is random have a prior.
        regularise_dynamics: what the loss adds for rough dynamics, or `None`.
        on_nonfinite: whether steps that are not finite change anything.
    """

    frozen: PyTree
    labels: PyTree[str]
    optimisation: Optimisation
    objective: AbstractObjective
    kl: KLWeight
    num_data: int
    num_steps: int
    steps_per_epoch: int
    num_draws: int
    accumulate: int
    draw_per_part: bool
    rematerialise: bool
    clip_norm: float | None
    ema_decay: float | None
    snr_decay: float | None
    augmentation: Callable | None
    terms: tuple[str, ...]
    has_energy: bool = False
    regularise_dynamics: Roughness | None = None
    on_nonfinite: AbstractOnNonFinite = Stop()

    @property
    def skips_nonfinite(self) -> bool:
        """Whether a step that is not finite leaves all as it was."""
        return self.on_nonfinite.most_in_a_row > 0

    def init(self, params: PyTree, model_state: eqx.nn.State | None) -> TrainState:
        """The state before the first step. Copies: later steps reuse its memory."""
        params = copied(params)
        zeros = lambda: jax.tree.map(jnp.zeros_like, params)
        return TrainState(
            params=params,
            opt_state=copied(self.optimisation.init(params, self.frozen)),
            model_state=copied(model_state),
            moments=None if self.snr_decay is None else (zeros(), zeros()),
            ema=None if self.ema_decay is None else zeros(),
            step=jnp.zeros((), jnp.int32),
        )

    def combine(self, params: PyTree) -> PyTree:
        """(model, likelihood) with these trained leaves."""
        return eqx.combine(params, self.frozen)

    def no_record(self) -> StepRecord:
        """A record of zeros, in the structure of those that `step` gives."""
        zero = jnp.zeros(())
        of_loss = LossRecord(
            loss=zero,
            elbo=zero,
            log_likelihood=zero,
            kl=zero,
            local_kl=zero,
            terms=dict.fromkeys(self.terms, zero),
            roughness=None if self.regularise_dynamics is None else zero,
            energy=zero if self.has_energy else None,
        )
        has_snr = self.snr_decay is not None
        return StepRecord(
            of_loss,
            grad_norm=zero,
            kl_weight=zero,
            learning_rate=dict.fromkeys(self.optimisation.rates, zero),
            gradient_snr=dict.fromkeys(self._label_names, zero) if has_snr else {},
            calibration=jnp.zeros((3, NUM_BINS)) if self._has_classes else None,
        )

    def step(
        self, state: TrainState, batch: tuple[PyTree, PyTree], *, key: PRNGKeyArray
    ) -> tuple[TrainState, StepRecord]:
        """Move the trained leaves against the gradient of one batch's loss.

        Args:
            state: before the step.
            batch: inputs and targets.
            key: of the augmentation and the draws.

        Returns:
            The state after it, and what there is to record.
        """
        augment_key, draw_key = jax.random.split(key)
        if self.augmentation is not None:
            batch = (self.augmentation(batch[0], key=augment_key), batch[1])
        kl_weight = self.kl.at(state.step, self.num_steps)
        kl_factor = self.kl.split.factor(
            state.step % self.steps_per_epoch, self.steps_per_epoch
        )
        grads, of_loss, calibration, model_state = self._gradient(
            state, batch, kl_weight, kl_factor, draw_key
        )
        grad_norm = optax.tree.norm(grads)
        rates = self.optimisation.rates
        learning_rate = {
            name: jnp.asarray(rate(state.step)) for name, rate in rates.items()
        }
        if self.clip_norm is not None:
            # The same rule as `optax.clip_by_global_norm`, on the norm at hand.
            shrink = jnp.minimum(1.0, self.clip_norm / jnp.maximum(grad_norm, 1e-30))
            grads = jax.tree.map(lambda g: g * shrink.astype(g.dtype), grads)
        moments = self._update_moments(state, grads)
        gradient_snr = self._gradient_snr(moments, state.step + 1, of_loss.loss.dtype)
        updates, opt_state = self.optimisation.transform.update(
            grads, state.opt_state, state.params, frozen=self.frozen
        )
        params = optax.apply_updates(state.params, updates)
        ema = state.ema
        if self.ema_decay is not None:
            ema = _running_mean(ema, params, _share(state.step, self.ema_decay))
        record = StepRecord(
            of_loss, grad_norm, kl_weight, learning_rate, gradient_snr, None
        )
        record = jax.tree.map(lambda a: a.astype(grad_norm.dtype), record)
        record = record._replace(calibration=calibration)
        new = TrainState(params, opt_state, model_state, moments, ema, state.step + 1)
        if self.skips_nonfinite:
            new = self._unless(~record.is_finite(), state, new)
        return new, record

    def without_start(self, state: TrainState) -> TrainState:
        """A state of earlier versions, whose running mean had begun at zero."""
        assert self.ema_decay is not None
        weight = _weight(jnp.maximum(state.step, 1), 1 - self.ema_decay)
        divided = lambda leaf: leaf / weight.astype(leaf.dtype)
        return dataclasses.replace(state, ema=jax.tree.map(divided, state.ema))

    def _unless(self, is_bad, before: TrainState, after: TrainState) -> TrainState:
        """The state after a step, or that of one which was passed over.

        It counts, for rates that follow the run and in the weights of running means:
        parameters count once more as they are, moments stay what they say (unless
        nothing but such steps came before, which the next hundreds forget).
        """
        ema, moments = before.ema, before.moments
        if self.ema_decay is not None:
            ema = _running_mean(ema, before.params, _share(before.step, self.ema_decay))
        if self.snr_decay is not None:
            rate = 1 - self.snr_decay
            had = jnp.where(before.step == 0, 1, _weight(before.step, rate))
            more = _weight(after.step, rate) / had
            moments = jax.tree.map(lambda a: a * more.astype(a.dtype), moments)
        opt_state = state_after_skip(before.opt_state, after.opt_state)
        before = dataclasses.replace(
            before, opt_state=opt_state, moments=moments, ema=ema, step=after.step
        )
        choose = lambda a, b: jnp.where(is_bad, a, b) if eqx.is_array(b) else b
        return jax.tree.map(choose, before, after)

    @property
    def _label_names(self) -> list[str]:
        return sorted(set(jax.tree.leaves(self.labels)))

    @property
    def _has_classes(self) -> bool:
        _, likelihood = self.frozen
        return isinstance(likelihood, AbstractClassLikelihood)

    def _gradient(self, state, batch, kl_weight, kl_factor, key):
        """Gradient, parts of the loss, calibration sums, new batch statistics."""

        def loss_fn(params, batch, model_state, key):
            model, likelihood = self.combine(params)
            loss, info = elbo_loss(
                model,
                likelihood,
                batch,
                num_data=self.num_data,
                kl_weight=kl_weight,
                kl_factor=kl_factor,
                key=key,
                num_draws=self.num_draws,
                objective=self.objective,
                state=model_state,
                rematerialise=self.rematerialise,
                regularise_dynamics=self.regularise_dynamics,
            )
            of_loss = LossRecord(
                loss=loss,
                elbo=info.elbo,
                log_likelihood=info.log_likelihood,
                kl=info.kl,
                local_kl=info.local_kl,
                terms={name: info.terms[name] for name in self.terms},
                roughness=None if self.regularise_dynamics is None else info.roughness,
                energy=info.energy if self.has_energy else None,
            )
            sums = None
            if isinstance(likelihood, AbstractClassLikelihood):
                probs = jnp.mean(likelihood.probs(info.output), axis=(0, 1))
                sums = calibration_sums(probs, batch[1])
            return loss, (of_loss, sums, info.state)

        grad_fn = jax.grad(loss_fn, has_aux=True)
        if self.accumulate == 1:
            grads, aux = grad_fn(state.params, batch, state.model_state, key)
            return grads, *aux
        parts = jax.tree.map(
            lambda a: a.reshape(self.accumulate, -1, *a.shape[1:]), batch
        )

        # With one key every part meets the same draw, as one big batch would; that
        # makes the mean of the parts' gradients the big batch's.
        def next_part(model_state, number, part):
            part_key = jax.random.fold_in(key, number) if self.draw_per_part else key
            grads, (of_loss, sums, model_state) = grad_fn(
                state.params, part, model_state, part_key
            )
            return model_state, (grads, of_loss, sums)

        first, rest = (
            jax.tree.map(lambda a: a[0], parts),
            jax.tree.map(lambda a: a[1:], parts),
        )
        model_state, total = next_part(state.model_state, 0, first)

        def add_part(carry, numbered):
            model_state, total = carry
            model_state, new = next_part(model_state, *numbered)
            return (model_state, jax.tree.map(jnp.add, total, new)), None

        numbers = jnp.arange(1, self.accumulate)
        (model_state, total), _ = jax.lax.scan(
            add_part, (model_state, total), (numbers, rest)
        )
        grads, of_loss, sums = total
        mean = lambda tree: jax.tree.map(lambda a: a / self.accumulate, tree)
        return mean(grads), mean(of_loss), sums, model_state

    def _update_moments(self, state, grads):
        """Running moments of the gradient: two passes over the parameters a step."""
        if self.snr_decay is None:
            return None
        share = 1 - self.snr_decay
        mean = _running_mean(state.moments[0], grads, share)
        squares = jax.tree.map(jnp.square, grads)
        square = _running_mean(state.moments[1], squares, share)
        return mean, square

    def _gradient_snr(self, moments, step, dtype) -> dict[str, Float[Array, ""]]:
        """For each label, the mean over entries of |mean| / standard deviation.

        Once an epoch, at its end; NaN before.
        """
        if self.snr_decay is None:
            return {}
        mean, square = moments
        unbias = 1.0 / _weight(step, 1 - self.snr_decay)

        def entry_ratios(m, s):
            m, s = m * unbias.astype(m.dtype), s * unbias.astype(s.dtype)
            variance = jnp.maximum(s - m**2, 0.0)
            # A constant gradient has no noise: its ratio stops at 1e4.
            return jnp.sum(jnp.abs(m) / jnp.sqrt(variance + 1e-8 * m**2 + 1e-30))

        def ratio(name):
            ms = _leaves_of(mean, self.labels, name)
            ss = _leaves_of(square, self.labels, name)
            total = sum(entry_ratios(m, s) for m, s in zip(ms, ss, strict=True))
            return jnp.asarray(total / sum(m.size for m in ms), dtype)

        return {
            name: jax.lax.cond(
                step % self.steps_per_epoch == 0,
                lambda name=name: ratio(name),
                lambda: jnp.full((), jnp.nan, dtype),
            )
            for name in self._label_names
        }


def _running_mean(mean, new, share):
    # Not `decay * m + (1 - decay) * x`: rounded, the two factors do not add up to 1.
    towards = lambda m, x: m + jnp.asarray(share, m.dtype) * (x - m)
    return jax.tree.map(towards, mean, new)


def _share(step: Int[Array, ""], decay: float) -> Float[Array, ""]:
    """Of the parameters after a step in their mean: all of it after the first.

    Of a mean that began at zero, to be divided by its weight, rounding keeps a part.
    """
    return (1 - decay) / _weight(step + 1, 1 - decay)


def _weight(step: Int[Array, ""], rate: RealScalar) -> Float[Array, ""]:
    """What came into a running mean: 1 - decay ** step, of the rate 1 - decay.

    The rate is small, and would be lost where the decay is rounded to near 1.
    """
    return -jnp.expm1(step.astype(float) * jnp.log1p(-rate))


def _leaves_of(tree, labels, name):
    pairs = zip(jax.tree.leaves(tree), jax.tree.leaves(labels), strict=True)
    return [leaf for leaf, label in pairs if label == name]
