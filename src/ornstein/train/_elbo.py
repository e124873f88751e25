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

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
from jaxtyping import Key

from .._types import Array, Float, PRNGKeyArray, PyTree, RealScalar
from ..functions import AbstractRandomFunction, Roughness, with_roughness
from ..likelihood import AbstractLikelihood


class AbstractObjective(eqx.Module):
    """What is made of several draws' log likelihoods and KLs.

    Attributes:
        is_mean_over_rows: whether the loss of a batch is the mean of the losses of
            its equal parts, which gradient accumulation needs.
    """

    is_mean_over_rows: eqx.AbstractClassVar[bool]

    @abc.abstractmethod
    def __call__(
        self,
        log_likelihood: Float[Array, " draws"],
        divergence: Float[Array, " draws"],
        num_data: int,
    ) -> Float[Array, ""]:
        """The loss in nats per example.

        Args:
            log_likelihood: each draw's log likelihood, per example.
            divergence: each draw's weighted KL, per example: D / N.
            num_data: N.
        """


class ELBO(AbstractObjective):
    r"""The mean over draws: $-\frac{1}{S} \sum_s (\ell_s - \beta D_s) / N$.

    Unbiased with any number of draws and any batch.
    """

    is_mean_over_rows = True

    def __call__(
        self,
        log_likelihood: Float[Array, " draws"],
        divergence: Float[Array, " draws"],
        num_data: int,
    ) -> Float[Array, ""]:
        """See `AbstractObjective`."""
        del num_data  # a mean of means needs no scale
        return jnp.mean(divergence - log_likelihood)


class ImportanceWeighted(AbstractObjective):
    r"""The importance-weighted bound: $-\frac{1}{N} \log \frac{1}{S} \sum_s w_s$.

    With $\log w_s = \ell_s - \beta D_s$, where $D_s$ must be the *sampled* log ratio
    $\log q(w_s) / p(w_s)$ of the draw itself (the path KL estimators `FullMonteCarlo`
    and `StickTheLanding`). With a closed-form KL this is no bound on the evidence.
    On minibatches it is biased: $\ell_s$ is the estimate $(N / n) \sum_i$ of the
    full log likelihood, and the logarithm of its exponential is not linear in it. Use
    it with `batch_size` equal to the data.

    References:
        Burda, Grosse & Salakhutdinov (2016), "Importance Weighted Autoencoders",
        equation (8).
    """

    is_mean_over_rows = False

    def __call__(
        self,
        log_likelihood: Float[Array, " draws"],
        divergence: Float[Array, " draws"],
        num_data: int,
    ) -> Float[Array, ""]:
        """See `AbstractObjective`."""
        log_weights = num_data * (log_likelihood - divergence)
        log_mean = jsp.logsumexp(log_weights) - math.log(log_weights.shape[0])
        return -log_mean / num_data


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
    """

    elbo: Float[Array, ""]
    log_likelihood: Float[Array, ""]
    kl: Float[Array, ""]
    local_kl: Float[Array, ""]
    terms: dict[str, Float[Array, ""]]
    output: PyTree[Float[Array, "members draws batch ..."]]
    state: eqx.nn.State | None
    roughness: Float[Array, ""]


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
        objective: `ELBO()` (the default) or `ImportanceWeighted()`.
        state: batch statistics. Every draw starts from the same; the draws' new
            statistics are averaged, and members are taken in turn.
        rematerialise: recompute each draw in the backward pass instead of storing
            its intermediate values: less memory for about a third more time.
        regularise_dynamics: add this much of $R_K$ to the loss.

    Returns:
        The loss, and its parts at KL weight 1.
    """
    x, y = batch
    objective = ELBO() if objective is None else objective
    if regularise_dynamics is not None:
        model = with_roughness(model, regularise_dynamics.order)

    def one_draw(member, key, state):
        state = jax.tree.map(lambda leaf: leaf, state)  # a state may be used only once
        draw = member(x, key=key, index=None, state=state)
        log_likelihood = jnp.mean(likelihood.log_prob(draw.output, y))
        roughness = jnp.zeros(())
        if regularise_dynamics is not None and draw.report is not None:
            roughness = draw.report.roughness
        parts = (log_likelihood, draw.kl, jnp.mean(draw.local_kl), draw.terms)
        parts += (jax.tree.map(jnp.mean, draw.local_terms), roughness)
        return parts, draw.output, draw.state

    if rematerialise:
        one_draw = eqx.filter_checkpoint(one_draw)

    def one_member(member, key, state):
        keys = jax.random.split(key, num_draws)
        parts, output, states = _map_draws(lambda k: one_draw(member, k, state), keys)
        log_likelihood, kl, local_kl, terms, local_terms, roughness = parts
        divergence = kl_weight * (kl_factor * kl / num_data + local_kl)
        loss = objective(log_likelihood, divergence, num_data)
        if regularise_dynamics is not None:
            loss += regularise_dynamics.weight * jnp.mean(roughness)
        if terms:
            kl = sum(terms.values())
        if local_terms:
            local_kl = sum(local_terms.values())
            terms |= {name: num_data * each for name, each in local_terms.items()}
        means = (loss, log_likelihood, kl, local_kl, terms, roughness)
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
    loss, log_likelihood, kl, local_kl, terms, roughness = means
    info = ELBOInfo(
        elbo=num_data * (log_likelihood - local_kl) - kl,
        log_likelihood=num_data * log_likelihood,
        kl=kl,
        local_kl=num_data * local_kl,
        terms=terms,
        output=jax.lax.stop_gradient(output),
        state=state,
        roughness=roughness,
    )
    return loss, info


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
