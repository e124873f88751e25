"""Laplace's approximation of a trained network's posterior: `fit_laplace`."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from ..._kinds import check_kind
from ..._types import Array, Float, Params, PyTree
from ...functions import (
    MAP,
    AbstractDeviation,
    Deterministic,
    IndependentNormal,
    JointNormal,
    LaplaceApproximation,
    check_rows_alone,
)
from ...likelihood import AbstractLikelihood, Gaussian
from ...network import (
    Network,
    as_network,
    in_inference,
    split_where,
    unwrapped,
)
from ...prior import AbstractPrior, ByLeaf, GaussianPrior, normal_leaves
from .._check import check_data
from .._fit import Fit
from ._evidence import Evidence, Residuals, evidence_at, largest_evidence
from ._gauss_newton import check_likelihood, count_outputs, gauss_newton
from ._points import check_points, with_model
from ._structure import MAX_JOINT_WEIGHTS, AbstractStructure, LastLayer

_FITTED_PRIOR = (
    "The prior's scales were fitted to these data (empirical Bayes): the bound has a "
    "point estimate of them in it, at no cost."
)
_LAST_LAYER = LastLayer()


def fit_laplace(
    fit: Any,
    split: Any,
    *,
    structure: AbstractStructure = _LAST_LAYER,
    prior: AbstractPrior | None = None,
    empirical_bayes: bool | None = None,
    linearised: bool = True,
) -> Fit:
    r"""A normal posterior around the weights that a network was trained to.

    Of any fit of `Deterministic` or `MAP`, whatever trained it: $q(w) = N(w^*, (H +
    D)^{-1})$, with H the generalised Gauss-Newton matrix of all training rows and D the
    prior's precision. $w^*$ should be the mode: a network that was stopped early, or
    trained without a prior, is near it at best. For a linear network with normal noise
    q is the posterior and `log_evidence` its evidence, if $w^*$ is its mean.

    Args:
        fit: what `fit` returned; of a network trained elsewhere
            `orn.prediction.FittedModel(orn.Deterministic(network), likelihood)`.
        split: the training data: has `x` and `y`, rows first. All rows count once.
        structure: which weights are random, and how: `LastLayer()`, `DiagonalGGN()`
            of all weights, or `FullGGN()` of a small network.
        prior: of these weights: `GaussianPrior`, `ByLeaf` of them, or
            `fan_in_prior(network)`. By default that of a `MAP`, and N(0, 1) of a
            `Deterministic`.
        empirical_bayes: multiply the prior's scales by the factor under which Laplace's
            evidence is largest, and a noise scale with `learn_scale=True` by another.
            By default where no prior was known: neither given nor of a `MAP`. $w^*$
            stays where it is, as in Daxberger et al.: it is the mode under the prior
            that it was trained with, and near that of the other as far as the data
            outweigh both, so that `log_evidence` is then Laplace's at $w^*$ and not
            at a mode.
        linearised: draws are of the network linearised at $w^*$, whose posterior q is;
            otherwise of the network itself with drawn weights.

    Returns:
        A `Fit` of a `LaplaceApproximation`, which has its `log_evidence`; a prior that
        was fitted is in its notes.

    Raises:
        TypeError: for what is no fit of a network with points for weights.
        ValueError: for a likelihood that is neither `Gaussian`, `Categorical` nor
            `Bernoulli`, for more weights than a full covariance can have, for a prior
            that is not normal, and for data that cannot be.

    References:
        MacKay (1992), "A Practical Bayesian Framework for Backpropagation Networks";
        Immer, Korzepa & Bauer (2021), "Improving predictions of Bayesian neural nets
        via local linearization"; Daxberger et al. (2021), "Laplace Redux: Effortless
        Bayesian Deep Learning".
    """
    check_points(fit, "fit_laplace")
    write = "`orn.train.LastLayer()`, `DiagonalGGN()` or `FullGGN()`"
    check_kind("structure", structure, AbstractStructure, write)
    if prior is not None:
        write = "`orn.GaussianPrior(1.0)`, or `orn.fan_in_prior(network)`"
        check_kind("prior", prior, AbstractPrior, write)
    check_likelihood(fit.likelihood)
    data = check_data(split, "split")
    _check_rows(fit, data)
    parts = _parts(fit.model, structure, prior)
    flat, _ = jax.flatten_util.ravel_pytree(parts.mode)
    found = gauss_newton(
        eqx.Partial(_network_at, in_inference(parts.rest)),
        parts.mode,
        fit.likelihood,
        data,
        state=fit.state,
        is_diagonal=structure.is_diagonal,
    )
    scale = _flat(parts.prior, parts.mode, lambda prior: prior.scale)
    centre = _flat(parts.prior, parts.mode, lambda prior: prior.mean)
    square = float(np.sum(((np.asarray(flat, np.float64) - centre) / scale) ** 2))
    eigenvalues, vectors = _eigen(found.curvature, scale)
    of_data = found.log_likelihood, eigenvalues, square
    if empirical_bayes is None:
        empirical_bayes = prior is None and not isinstance(fit.model, MAP)
    residuals = _residuals(fit.likelihood, data, found.sum_of_squares)
    evidence = (
        largest_evidence(*of_data, residuals)
        if empirical_bayes
        else evidence_at(*of_data)
    )
    model = LaplaceApproximation(
        parts.mode,
        parts.rest,
        _deviation(evidence, scale, eigenvalues, vectors, parts.mode),
        _scaled(parts.prior, evidence.prior_factor),
        jnp.asarray(_kl(evidence, eigenvalues, square), jnp.result_type(float)),
        jnp.asarray(evidence.log_evidence, jnp.result_type(float)),
        linearised,
    )
    likelihood = fit.likelihood
    if evidence.noise_factor != 1:
        likelihood = eqx.tree_at(
            lambda noise: noise.log_scale,
            likelihood,
            replace_fn=lambda log: log + float(np.log(evidence.noise_factor)),
        )
    own_notes = (_FITTED_PRIOR,) if empirical_bayes else ()
    return with_model(fit, model, likelihood, own_notes=own_notes)


def _check_rows(fit: Any, data: tuple[PyTree, PyTree]) -> None:
    """Refuse rows that the network, or targets that the likelihood, cannot take."""
    x, y = data
    check_rows_alone(fit.model, x, fit.state)
    network = in_inference(fit.model.network)
    fit.likelihood.check_targets(
        y, count_outputs(network, fit.likelihood, x, fit.state)
    )


def laplace_like(
    model: Deterministic | MAP,
    *,
    structure: AbstractStructure = _LAST_LAYER,
    prior: AbstractPrior | None = None,
    linearised: bool = True,
) -> LaplaceApproximation:
    """What `fit_laplace` would return of this model, with zeros for what data say.

    Args:
        model: a network, trained or not.
        structure: as `fit_laplace` takes it.
        prior: as `fit_laplace` takes it.
        linearised: as `fit_laplace` takes it.
    """
    parts = _parts(model, structure, prior)
    if structure.is_diagonal:
        deviation = IndependentNormal(jax.tree.map(jnp.zeros_like, parts.mode))
    else:
        flat, _ = jax.flatten_util.ravel_pytree(parts.mode)
        deviation = JointNormal(jnp.zeros((flat.size, flat.size), flat.dtype))
    zero = jnp.zeros((), jnp.result_type(float))
    return LaplaceApproximation(
        parts.mode, parts.rest, deviation, parts.prior, zero, zero, linearised
    )


class _Parts(NamedTuple):
    """A network with the weights that become random apart, and their prior."""

    mode: Params
    rest: PyTree
    prior: AbstractPrior


def _parts(
    model: Deterministic | MAP,
    structure: AbstractStructure,
    prior: AbstractPrior | None,
) -> _Parts:
    # As the user wrote it, which `where` and the prior are about.
    network: Any = unwrapped(model.network)
    mode, rest = split_where(network, structure.chosen)
    num_weights = sum(leaf.size for leaf in jax.tree.leaves(mode))
    if num_weights == 0:
        raise ValueError(
            "The structure chose no weights (floating-point arrays): let `where` give "
            "a part of the network that has some."
        )
    if num_weights > MAX_JOINT_WEIGHTS and not structure.is_diagonal:
        other = "" if isinstance(structure, LastLayer) else "`LastLayer()`, "
        most = f"{MAX_JOINT_WEIGHTS:,}"
        raise ValueError(
            f"`{type(structure).__name__}` of {num_weights:,} weights has a covariance "
            f"of {num_weights:,} x {num_weights:,}, and more than {most} "
            f"weights are too many: use {other}`DiagonalGGN()`, or a narrower layer."
        )
    if prior is None:
        prior = model.prior if isinstance(model, MAP) else GaussianPrior(1.0)
    if isinstance(prior, GaussianPrior):
        own: AbstractPrior = prior
        own.check(mode)
    else:
        all_weights, _ = split_where(network, None)
        whole = all_weights
        if isinstance(model, MAP) and prior is model.prior:
            whole = model.params
        prior.check(whole)
        try:
            of_each = normal_leaves(prior, whole)
        except TypeError as error:
            raise ValueError(
                f"Laplace's approximation is around a normal prior, got "
                f"`{type(prior).__name__}`: give `GaussianPrior(1.0)`, or "
                "`fan_in_prior(network)`."
            ) from error
        own = ByLeaf(_chosen(of_each, mode))
        own.check(mode)
    return _Parts(jax.tree.map(jnp.asarray, mode), rest, own)


def _chosen(priors: PyTree, mode: Params) -> PyTree:
    """The priors of these weights, and `None` for others."""
    is_end = lambda node: node is None or isinstance(node, GaussianPrior)
    return jax.tree.map(
        lambda prior, leaf: None if leaf is None else prior,
        priors,
        mode,
        is_leaf=is_end,
    )


def _network_at(rest: PyTree, weights: Params) -> Network:
    return as_network(eqx.combine(weights, rest))


def _flat(
    prior: AbstractPrior, mode: Params, what: Callable[[GaussianPrior], Array]
) -> Float[np.ndarray, " dim"]:
    """A number of the prior for each weight, in double precision."""
    priors = jax.tree.leaves(
        normal_leaves(prior, mode), is_leaf=lambda n: isinstance(n, GaussianPrior)
    )
    leaves = jax.tree.leaves(mode)
    each = [
        np.broadcast_to(np.asarray(what(own), np.float64), leaf.shape).ravel()
        for own, leaf in zip(priors, leaves, strict=True)
    ]
    return np.concatenate(each)


def _eigen(
    curvature: Float[np.ndarray, "..."], scale: Float[np.ndarray, " dim"]
) -> tuple[Float[np.ndarray, " dim"], Float[np.ndarray, "dim dim"] | None]:
    """Eigenvalues and vectors of the curvature in units of the prior's precision."""
    if curvature.ndim == 1:
        return curvature * scale**2, None
    values, vectors = np.linalg.eigh(scale[:, None] * curvature * scale)
    return np.maximum(values, 0.0), vectors  # below 0 by rounding alone


def _residuals(
    likelihood: AbstractLikelihood, data: tuple[PyTree, PyTree], squares: float
) -> Residuals | None:
    """What the noise is fitted to, if it is learned."""
    if not (isinstance(likelihood, Gaussian) and likelihood.learn_scale):
        return None
    return Residuals(int(np.size(data[1])), squares)


def _deviation(
    evidence: Evidence,
    scale: Float[np.ndarray, " dim"],
    eigenvalues: Float[np.ndarray, " dim"],
    vectors: Float[np.ndarray, "dim dim"] | None,
    mode: Params,
) -> AbstractDeviation:
    r"""$(H + D)^{-1} = S U (1 + t)^{-1} U^T S$ for the prior's scales S."""
    flat, unravel = jax.flatten_util.ravel_pytree(mode)
    s, c = evidence.prior_factor, evidence.noise_factor
    shrunk = 1 / np.sqrt(1 + eigenvalues * (s / c) ** 2)
    if vectors is None:
        scales = jnp.asarray(s * scale * shrunk, flat.dtype)
        return IndependentNormal(unravel(scales))
    root = s * scale[:, None] * vectors * shrunk
    return JointNormal(jnp.asarray(root, flat.dtype))


def _scaled(prior: AbstractPrior, factor: float) -> AbstractPrior:
    """The prior with its scales times a factor."""
    is_normal = lambda node: isinstance(node, GaussianPrior)
    scaled = functools.partial(eqx.tree_at, lambda p: p.scale)
    return jax.tree.map(
        lambda own: scaled(own, replace_fn=lambda scale: scale * factor),
        prior,
        is_leaf=is_normal,
    )


def _kl(
    evidence: Evidence, eigenvalues: Float[np.ndarray, " dim"], square: float
) -> float:
    """KL(q || p), nats."""
    s, c = evidence.prior_factor, evidence.noise_factor
    t = eigenvalues * (s / c) ** 2
    return float(0.5 * (square / s**2 - evidence.num_determined + np.log1p(t).sum()))
