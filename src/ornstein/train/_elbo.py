r"""The evidence lower bound: the one place where the size of the data enters.

Notation: N examples in the data set, n in the batch, q the posterior over what all
examples share, p its prior. One draw of q gives

    ell = (N / n) sum_i log p(y_i | x_i, draw),
    D   = KL(q || p) + (N / n) sum_i local_kl_i,

and ELBO = E[ell - D], in nats per data set. What is minimised is -ELBO / N, in which
the scale N / n becomes a mean over rows and KL / N: a loss that does not depend on
the size of the batch.
"""

import abc
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
from jaxtyping import Key

from .._types import Array, Float, PRNGKeyArray, PyTree, RealScalar
from ..functions import (
    AbstractRandomFunction,
    LogRatio,
    Roughness,
    copied,
    total_kl,
    with_roughness,
)
from ..likelihood import AbstractLikelihood


class AbstractObjective(eqx.Module):
    """What is made of several draws' log likelihoods and KLs.

    Attributes:
        is_mean_over_rows: whether, with every model, the loss of a batch is the mean
            of the losses of its equal parts, which gradient accumulation needs.
    """

    is_mean_over_rows: eqx.AbstractClassVar[bool]

    @abc.abstractmethod
    def check(
        self, log_ratio: LogRatio | None, *, num_rows: int, num_data: int
    ) -> None:
        """Refuse a model, or a batch, with which this is not what it is called.

        Args:
            log_ratio: what the model's KLs are: see `Draw`.
            num_rows: n, rows in a batch.
            num_data: N.
        """

    @abc.abstractmethod
    def __call__(
        self,
        log_likelihood: Float[Array, "draws batch"],
        divergence: Float[Array, "draws batch"],
        num_data: int,
        *,
        log_ratio: LogRatio | None,
    ) -> Float[Array, ""]:
        """The loss in nats per example.

        Args:
            log_likelihood: of each row with each draw.
            divergence: the row's share of each draw's weighted KL: its own local KL,
                and an N-th of what all examples share.
            num_data: N.
            log_ratio: what the model's KLs are: see `Draw`.
        """


class ELBO(AbstractObjective):
    r"""The mean over draws: $-\frac{1}{S} \sum_s (\ell_s - \beta D_s) / N$.

    Unbiased with any number of draws and any batch.
    """

    is_mean_over_rows = True

    def check(
        self, log_ratio: LogRatio | None, *, num_rows: int, num_data: int
    ) -> None:
        """Nothing: it is a bound with any KL and any batch."""
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
        del num_data, log_ratio  # a mean of means needs no scale
        return jnp.mean(divergence - log_likelihood)


class ImportanceWeighted(AbstractObjective):
    r"""The importance-weighted bound on the evidence, of S draws.

    With the log ratio $r = \log q / p$ of the draw itself, it is, for a model with

    - latents of each row (`LatentSDE`, `LatentODE`), on batches of any size:
      $-\frac{1}{N} \sum_i \log \frac{1}{S} \sum_s w_{is}$ with
      $\log w_{is} = \log p(y_i | x_i, z_{is}) - \beta r_{is}$;
    - one draw that all rows share (`SDEBNN`, `MeanField`), on all the data at once:
      $-\frac{1}{N} \log \frac{1}{S} \sum_s w_s$ with
      $\log w_s = \sum_i \log p(y_i | x_i, \theta_s) - \beta r_s$.

    At $\beta = 1$ these are bounds, which rise with S to the log evidence. All else is
    refused. A KL in closed form is no log ratio of a draw, so that the weights would
    not average to the evidence. On a minibatch $\log w_s$ of a shared draw is an
    estimate, of whose exponential the logarithm is biased. Where rows meet draws of
    their own from one shared posterior (`Flipout`, `ImplicitBNN`, `is_path_per_row`), a
    weight belongs to no draw. With both kinds of latents, rows would need several draws
    under each shared one: with one, $\log \frac{1}{S} \sum_s \prod_i w_{is}$ alone
    is a bound, of little worth for many rows. Sticking the landing has the value of the
    log ratio, and the gradient of another bound: the score that it leaves out has mean
    zero at S = 1 alone (Tucker, Lawson, Gu & Maddison 2019).

    References:
        Burda, Grosse & Salakhutdinov (2016), "Importance Weighted Autoencoders",
        equation (8).

        Tucker, Lawson, Gu & Maddison (2019), "Doubly Reparameterized Gradient
        Estimators for Monte Carlo Objectives".
    """

    is_mean_over_rows = False

    def check(
        self, log_ratio: LogRatio | None, *, num_rows: int, num_data: int
    ) -> None:
        """Refuse what gives no bound.

        Raises:
            ValueError: for a KL that is not the log ratio of a draw, or a minibatch
                of rows that share one.
        """
        if log_ratio is None:
            raise ValueError(
                "`ImportanceWeighted` weighs each draw by its own log ratio of "
                "posterior and prior, which this model's draws do not have (a KL in "
                "closed form, sticking the landing, rows that meet different draws, or "
                "no KL at all): give an SDE's model `orn.sde.FullMonteCarlo()`, "
                "`MeanField` both `kl=orn.functions.SampledKL()` and "
                "`noise=orn.Reparameterised()`, or use `orn.ELBO()`."
            )
        if log_ratio == "shared" and num_rows < num_data:
            raise ValueError(
                f"`ImportanceWeighted` is no bound on a batch of {num_rows} of "
                f"{num_data} rows, which share their draws: use batches of all rows, "
                "or `ELBO()`."
            )

    def __call__(
        self,
        log_likelihood: Float[Array, "draws batch"],
        divergence: Float[Array, "draws batch"],
        num_data: int,
        *,
        log_ratio: LogRatio | None,
    ) -> Float[Array, ""]:
        """See `AbstractObjective`."""
        log_weights = log_likelihood - divergence
        if log_ratio == "rows":
            return -jnp.mean(_log_mean_exp(log_weights))
        return -_log_mean_exp(num_data * jnp.mean(log_weights, axis=1)) / num_data


class ELBOInfo(eqx.Module):
    """The parts of the bound, for people to read. Averages over draws and members.

    Attributes:
        elbo: at KL weight 1, nats per data set: `log_likelihood - kl - local_kl`.
        log_likelihood: nats per data set, estimated from the batch.
        kl: KL of what all examples share, nats: the sum of `terms` where the model
            names them (the value, whatever estimator its gradient comes from).
        local_kl: KL of single examples' latents, nats per data set.
        terms: what `kl` and `local_kl` are made of, nats per data set by name; empty
            if the model doesn't say.
        output: each member's and draw's likelihood parameters.
        state: batch statistics for the next call, or `None`.
        roughness: $R_K$ of the dynamics; 0 unless they are regularised.
        energy: of points that have a prior; 0 where there are none. The loss counts it
            as it counts `kl`.
    """

    elbo: Float[Array, ""]
    log_likelihood: Float[Array, ""]
    kl: Float[Array, ""]
    local_kl: Float[Array, ""]
    terms: dict[str, Float[Array, ""]]
    output: PyTree[Float[Array, "members draws batch ..."]]
    state: eqx.nn.State | None
    roughness: Float[Array, ""]
    energy: Float[Array, ""]


def elbo_loss(
    model: AbstractRandomFunction,
    likelihood: AbstractLikelihood,
    batch: tuple[PyTree[Array], PyTree[Array]],
    *,
    num_data: int,
    key: PRNGKeyArray,
    kl_weight: RealScalar = 1.0,
    kl_factor: RealScalar = 1.0,
    num_draws: int = 1,
    objective: AbstractObjective | None = None,
    state: eqx.nn.State | None = None,
    rematerialise: bool = False,
    regularise_dynamics: Roughness | None = None,
) -> tuple[Float[Array, ""], ELBOInfo]:
    r"""The loss $-\mathrm{ELBO} / N$ of a batch, in nats per example.

    $-\frac{1}{n} \sum_i \log p(y_i | x_i)
    + \beta (\mathrm{KL} / N + \frac{1}{n} \sum_i \mathrm{local\_kl}_i)$,
    averaged over draws and over the model's members. Its expectation over batches is
    the loss of the whole data set, whatever their size.

    Args:
        model: the random function.
        likelihood: of targets given the function's output.
        batch: inputs and targets, rows first.
        num_data: $N$, examples in the whole data set; never guessed.
        key: randomness of the draws.
        kl_weight: $\beta$; 1 is the bound on the evidence.
        kl_factor: how often this batch counts KL, the part that all examples share: 1
            on average over an epoch (see `AbstractKLSplit`).
        num_draws: draws of each member.
        objective: `ELBO()` (the default) or `ImportanceWeighted()`, which says which
            models and batches it is for.
        state: batch statistics. Every draw starts from the same; the draws' new
            statistics are averaged, and members are taken in turn.
        rematerialise: recompute each draw in the backward pass instead of storing
            its intermediate values: less memory for about a third more time.
        regularise_dynamics: add this much of $R_K$ to the loss.

    Returns:
        The loss, and its parts at KL weight 1.

    Raises:
        ValueError: for an objective that is not what it is called with this model or
            batch.
    """
    x, y = batch
    objective = ELBO() if objective is None else objective
    if regularise_dynamics is not None:
        model = with_roughness(model, regularise_dynamics.order)

    def one_draw(member, key, state):
        draw = member(x, key=key, index=None, state=copied(state))
        log_likelihood = likelihood.log_prob(draw.output, y)
        roughness = jnp.zeros(())
        if regularise_dynamics is not None and draw.report is not None:
            roughness = draw.report.roughness
        energy = jnp.zeros(()) if draw.energy is None else draw.energy
        parts = (log_likelihood, draw.kl, draw.local_kl, draw.terms)
        parts += (jax.tree.map(jnp.mean, draw.local_terms), roughness, energy)
        return parts, draw.output, draw.state, _Static(draw.log_ratio)

    if rematerialise:
        one_draw = eqx.filter_checkpoint(one_draw)

    def one_member(member, key, state):
        keys = jax.random.split(key, num_draws)
        parts, output, states, log_ratio = _map_draws(
            lambda k: one_draw(member, k, state), keys
        )
        log_likelihood, kl, local_kl, terms, local_terms, roughness, energy = parts
        num_rows = log_likelihood.shape[1]
        objective.check(log_ratio.value, num_rows=num_rows, num_data=num_data)
        shared = kl_factor * (kl + energy)[:, None] / num_data
        divergence = kl_weight * (shared + local_kl)
        loss = objective(
            log_likelihood, divergence, num_data, log_ratio=log_ratio.value
        )
        if regularise_dynamics is not None:
            loss += regularise_dynamics.weight * jnp.mean(roughness)
        kl, local_kl = total_kl(kl, terms), total_kl(local_kl, local_terms)
        terms |= {name: num_data * each for name, each in local_terms.items()}
        means = (loss, log_likelihood, kl, local_kl, terms, roughness, energy)
        means = jax.tree.map(jnp.mean, means)
        return means, output, jax.tree.map(_merge_draws, states)

    if model.num_members == 1:  # no loop to compile for the usual case
        means, output, state = one_member(model.member(0), key, state)
        output = jax.tree.map(lambda o: o[None], output)
    else:
        # Members in turn, because each may own a part of the state.
        def next_member(state, number_and_key):
            number, key = number_and_key
            means, output, state = one_member(model.member(number), key, state)
            return state, (means, output)

        numbers = jnp.arange(model.num_members)
        keys = jax.random.split(key, model.num_members)
        state, (means, output) = jax.lax.scan(next_member, state, (numbers, keys))
        means = jax.tree.map(jnp.mean, means)
    loss, log_likelihood, kl, local_kl, terms, roughness, energy = means
    info = ELBOInfo(
        elbo=num_data * (log_likelihood - local_kl) - kl,
        log_likelihood=num_data * log_likelihood,
        kl=kl,
        local_kl=num_data * local_kl,
        terms=terms,
        output=jax.lax.stop_gradient(output),
        state=state,
        roughness=roughness,
        energy=energy,
    )
    return loss, info


class _Static(eqx.Module):
    """What is known while tracing, carried through loops over draws."""

    value: Any = eqx.field(static=True)


def _log_mean_exp(log_weights: Float[Array, "draws ..."]) -> Float[Array, "..."]:
    return jsp.logsumexp(log_weights, axis=0) - math.log(log_weights.shape[0])


def _map_draws(fn: Callable, keys: Key[Array, " draws"]) -> PyTree:
    """Map over draws: one after another on a CPU, where `vmap` over weights is slow."""
    if keys.shape[0] == 1:  # no loop to compile for the usual case
        return jax.tree.map(lambda leaf: leaf[None], fn(keys[0]))
    if jax.default_backend() == "cpu":
        return jax.lax.map(fn, keys)
    return jax.vmap(fn)(keys)


def _merge_draws(leaf: Array) -> Array:
    """Mean of the draws' statistics; the first of those that cannot be averaged."""
    return jnp.mean(leaf, axis=0) if eqx.is_inexact_array(leaf) else leaf[0]
