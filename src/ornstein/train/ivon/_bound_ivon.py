r"""IVON at work in one run, as an optax transformation: see `IVON` for the notation."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from ..._tree import is_at
from ..._types import Array, Float, Int, Params, PyTree
from ...functions import (
    WEIGHTS,
    AbstractRandomFunction,
    Ensemble,
    LogRatio,
    NormalFamily,
)
from ...prior import AbstractPrior, GaussianPrior, normal_leaves, with_fitted_scales
from .._elbo import AbstractObjective
from ._ivon import IVON

POINTS = "points"
"""The group of what is trained beside the random weights."""


class IVONState(NamedTuple):
    r"""What a step of IVON needs of the steps before.

    Attributes:
        step: t, how many there were.
        momentum: $\bar g$, from 0.
        hessian: h.
    """

    step: Int[Array, ""]
    momentum: Params
    hessian: Params


class LikelihoodGradient(AbstractObjective):
    """The value of `ELBO`, and the gradient of its log likelihood alone."""

    is_mean_over_rows = True

    def check(
        self, log_ratio: LogRatio | None, *, num_rows: int, num_data: int
    ) -> None:
        """Nothing: it is the bound with any KL and any batch."""
        del log_ratio, num_rows, num_data

    def __call__(
        self,
        log_likelihood: Float[Array, "draws batch"],
        divergence: Float[Array, "draws batch"],
        num_data: int,
        *,
        log_ratio: LogRatio | None,
    ) -> Float[Array, ""]:
        """See `AbstractObjective`."""
        del num_data, log_ratio
        return jnp.mean(jax.lax.stop_gradient(divergence) - log_likelihood)


class _Now(NamedTuple):
    r"""What a step is about.

    Attributes:
        step: t - 1.
        rate: $\alpha$.
        hessian_rate: $\rho$, of h.
        is_first: whether an epoch begins, and one has passed.
    """

    step: Int[Array, ""]
    rate: Float[Array, ""]
    hessian_rate: Float[Array, ""]
    is_first: Any


class BoundIVON(NamedTuple):
    r"""IVON for one run.

    Attributes:
        rule: the numbers.
        given: the model as it was given, which `IVON.check` let pass.
        size: $\lambda$.
        steps_per_epoch: steps of an epoch.
    """

    rule: IVON
    given: AbstractRandomFunction
    size: float
    steps_per_epoch: int

    def started(self) -> AbstractRandomFunction:
        """The model with the scales that `init_hessian` says."""

        def of_leaf(mean: Array, prior: GaussianPrior) -> Array:
            hessian = self.rule.init_hessian + self._delta(prior, mean)
            return jnp.broadcast_to((self.size * hessian) ** -0.5, mean.shape)

        def of_part(mean: Params, prior: AbstractPrior) -> Params:
            scales = jax.tree.map(of_leaf, mean, normal_leaves(prior, mean))
            return NormalFamily.around(mean, scales).rho

        part = _part(self.given)
        rho = self._each_member(of_part)(part.family.mean, part.prior)
        return eqx.tree_at(lambda model: _part(model).family.rho, self.given, rho)

    def labels(self) -> PyTree[str]:
        """The model's own; with empirical Bayes the prior's scales are trained too."""
        labels = self.given.labels()
        if not self.rule.empirical_bayes:
            return labels
        is_scale = is_at(self.given, lambda model: _scales(_part(model).prior))
        return jax.tree.map(
            lambda name, yes: WEIGHTS if yes else name, labels, is_scale
        )

    def groups(self, labels: PyTree[str]) -> PyTree[str]:
        """Whether IVON moves a leaf of (model, likelihood), or the rule for points.

        Args:
            labels: of the trained leaves.
        """
        points = jax.tree.map(lambda name: POINTS, labels)
        weights = [jax.tree.map(lambda name: WEIGHTS, part) for part in _moved(points)]
        return eqx.tree_at(_moved, points, weights)

    def transform(
        self, rate: optax.Schedule, hessian_rate: optax.Schedule
    ) -> optax.GradientTransformationExtraArgs:
        r"""The rule for the trained leaves of (model, likelihood), others masked.

        Args:
            rate: the learning rate at a step.
            hessian_rate: $\rho$ at a step.
        """

        def init(params: PyTree) -> IVONState:
            mean = _part(params[0]).family.mean
            hessian = lambda leaf: jnp.full_like(leaf, self.rule.init_hessian)
            return IVONState(
                step=jnp.zeros((), jnp.int32),
                momentum=jax.tree.map(jnp.zeros_like, mean),
                hessian=jax.tree.map(hessian, mean),
            )

        def update(updates, state, params=None, **others):
            assert params is not None
            trees = (updates, params, others["frozen"])
            grad, part, still = (_part(tree[0]) for tree in trees)
            step = state.step
            now = _Now(
                step=step,
                rate=jnp.asarray(rate(step)),
                hessian_rate=jnp.asarray(hessian_rate(step)),
                is_first=(step > 0) & (step % self.steps_per_epoch == 0),
            )
            move = self._each_member(lambda *trees: self._move(*trees, now))
            prior = eqx.combine(part.prior, still.prior)
            family, momentum, hessian, new_prior = move(
                grad.family, part.family, state.momentum, state.hessian, prior
            )
            # Of the prior, only what is trained.
            moved = jax.tree.map(
                lambda g, new, old: None if g is None else new - old,
                grad.prior,
                new_prior,
                prior,
                is_leaf=lambda node: node is None,
            )
            updates = eqx.tree_at(_moved, updates, [family, moved])
            return updates, IVONState(step + 1, momentum, hessian)

        return optax.GradientTransformationExtraArgs(init, update)

    def _move(
        self,
        grad: NormalFamily,
        family: NormalFamily,
        momentum: Params,
        hessian: Params,
        prior: AbstractPrior,
        now: _Now,
    ) -> tuple[NormalFamily, Params, Params, AbstractPrior]:
        """The step of one member: updates of q, the new moments, the new prior."""
        if self.rule.empirical_bayes:
            prior = jax.lax.cond(
                now.is_first,
                lambda: with_fitted_scales(prior, family.mean, family.scale),
                lambda: prior,
            )
        treedef = jax.tree.structure(family.mean)
        trees = (grad.mean, grad.rho, family.mean, family.rho, family.scale)
        trees += (momentum, hessian, normal_leaves(prior, family.mean))
        columns = map(treedef.flatten_up_to, trees)
        moved = [self._move_leaf(*leaf, now) for leaf in zip(*columns, strict=True)]
        mean, rho, momentum, hessian = map(treedef.unflatten, zip(*moved, strict=True))
        return NormalFamily(mean, rho), momentum, hessian, prior

    def _move_leaf(
        self,
        mean_grad: Array,
        rho_grad: Array,
        mean: Array,
        rho: Array,
        sigma: Array,
        momentum: Array,
        h: Array,
        prior: GaussianPrior,
        now: _Now,
    ) -> tuple[Array, Array, Array, Array]:
        """Updates of mean and rho, and the new momentum and h, of one leaf."""
        like = lambda value: value.astype(mean.dtype)
        beta, delta = self.rule.momentum, self._delta(prior, mean)
        num_members = self.given.num_members  # of whose losses `fit` takes the mean
        g = num_members * mean_grad
        # With sigma = softplus(rho), d sigma / d rho is the sigmoid.
        g_sigma = num_members * rho_grad / jax.nn.sigmoid(rho)
        momentum = beta * momentum + (1 - beta) * g
        change = like(now.hessian_rate) * (g_sigma / sigma - h)
        h = h + change + 0.5 * change**2 / (h + delta)
        unbiased = momentum / like(1 - beta ** (now.step + 1).astype(float))
        natural = (unbiased + delta * (mean - like(prior.mean))) / (h + delta)
        rate = like(now.rate) * (self.rule.init_hessian + delta)
        scale = jax.lax.rsqrt(self.size * (h + delta))  # a power costs more
        new_rho = NormalFamily.around(mean, scale).rho
        return -rate * natural, new_rho - rho, momentum, h

    def _delta(self, prior: GaussianPrior, like: Array) -> Array:
        return 1 / (self.size * prior.scale.astype(like.dtype) ** 2)

    def _each_member(self, fn):
        return eqx.filter_vmap(fn) if isinstance(self.given, Ensemble) else fn


def _part(model: Any) -> Any:
    """The `MeanField`, or that of all members together, in a tree like a model."""
    return model.members if isinstance(model, Ensemble) else model


def _moved(tree: Any) -> list[Any]:
    """What IVON moves, in a tree like (model, likelihood).

    Subtrees, not their leaves: to `tree_at` an empty tuple is one.
    """
    part = _part(tree[0])
    return [part.family, part.prior]


def _scales(prior: AbstractPrior) -> list[Array]:
    is_normal = lambda node: isinstance(node, GaussianPrior)
    return [one.scale for one in jax.tree.leaves(prior, is_leaf=is_normal)]
