"""Samples of Markov chains as a random function: what `sample` returns."""

import dataclasses
import math
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._types import Array, Float, Int, PRNGKeyArray, PyTree
from ...likelihood import AbstractClassLikelihood, AbstractLikelihood
from ...network import Network, as_network, call_network, parameter_masks
from ...prior import AbstractPrior, GaussianPrior
from .._base import FROZEN, AbstractRandomFunction, Draw, no_local_kl
from .._posterior_parts import PosteriorParts
from ._chain_diagnostics import (
    ChainDiagnostics,
    diagnose_chains,
    e_bfmi,
    energy_of,
    ess_bulk,
    ess_tail,
    r_hat,
    thinned,
    worst_of,
)

_LEAST_BLOCKS = 4
"""Of draws that depend on each other: chains, or of fewer chains pieces of each."""

_DIAGNOSED_SAMPLES = 250
"""Of more, evenly spread ones are enough for diagnostics in a result."""


class StoredDraws(NamedTuple):
    """The samples behind some draws, ready for `predict`.

    Attributes:
        model: a random function with those samples alone.
        likelihood: with each draw's own scale, if the scale was sampled.
        state: none: samples have no batch statistics.
    """

    model: AbstractRandomFunction
    likelihood: AbstractLikelihood
    state: None = None


class PosteriorSamples(AbstractRandomFunction):
    """The empirical distribution of sampled networks.

    Draw i is sample i mod `num_strata`, in an order in which any first few draws take
    all chains in turn and lie spread over the run.

    Args:
        network: maps a batch to outputs; `None` for the parameters that were sampled.
        fixed_likelihood: of the targets; `None` for a scale that was sampled.
        positions: (parameters, scale) of each sample, chains and samples first.
        info: what the kernel says of each step behind a sample, (chains, samples).
        chain_info: numbers of each chain, (chains,): of its warm-up.
        notes: sentences about what is wrong with the chains.
        starts: where the chains began, in words: what R-hat could see.
        prior: of the parameters, for what is asked of a posterior; files of samples do
            not keep it, and `with_prior` gives it.

    Raises:
        ValueError: if chains are of unequal length, or nothing was sampled.
    """

    network: PyTree
    fixed_likelihood: PyTree
    positions: PyTree
    info: dict[str, PyTree]
    chain_info: dict[str, PyTree] = eqx.field(default_factory=dict)
    notes: tuple[str, ...] = eqx.field(static=True, default=())
    starts: str | None = eqx.field(static=True, default=None)
    num_members: int = eqx.field(static=True, default=1)
    prior: AbstractPrior | None = None

    def __check_init__(self):
        lengths = {a.shape[:2] for a in jax.tree.leaves((self.positions, self.info))}
        if len(lengths) != 1 or len(min(lengths)) < 2 or 0 in min(lengths):
            raise ValueError(
                f"Samples need the same (chains, samples) in front of every leaf, got "
                f"{sorted(lengths)}: cut longer chains to the shortest."
            )

    @property
    def num_chains(self) -> int:
        """Chains that ran side by side."""
        return jax.tree.leaves(self.positions)[0].shape[0]

    @property
    def num_samples(self) -> int:
        """Samples of each chain."""
        return jax.tree.leaves(self.positions)[0].shape[1]

    @property
    def num_strata(self) -> int:
        """Samples of all chains."""
        return self.num_chains * self.num_samples

    @property
    def model(self) -> "PosteriorSamples":
        """Itself, as `predict` asks."""
        return self

    @property
    def likelihood(self) -> AbstractLikelihood:
        """The likelihood; a sampled scale is at its log's mean (not in `predict`)."""
        mean = lambda a: jnp.mean(jnp.asarray(a), axis=(0, 1))
        return eqx.combine(jax.tree.map(mean, self.positions[1]), self.fixed_likelihood)

    @property
    def state(self) -> None:
        """None: a network with batch statistics cannot be sampled."""

    def __call__(
        self,
        x: PyTree[Array],
        *,
        key: PRNGKeyArray,
        index: int | Array | None = None,
        state: eqx.nn.State | None = None,
    ) -> Draw:
        """See `AbstractRandomFunction`.

        Raises:
            ValueError: without an index: samples cannot be trained.
        """
        del key
        if index is None:
            raise ValueError(
                "`PosteriorSamples` are not trained: pass them to `predict`, or give "
                "the `index` of a sample."
            )
        output, _, report = call_network(self.network_at(index), x)
        return Draw(
            output=output,
            kl=jnp.zeros(()),
            local_kl=no_local_kl(x),
            state=state,
            report=report,
        )

    def member(self, number: int | Array) -> AbstractRandomFunction:
        """Itself: it is trained alone."""
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        """Chains of samples, which have no bound on the evidence.

        A network that tells its parameters apart has a standard normal prior, as all
        whitened ones; of any other the prior must be known.
        """
        sizes = [math.prod(a.shape[2:]) for a in jax.tree.leaves(self.positions)]
        return PosteriorParts(
            has_bound=False,
            notes=self.notes,
            num_parameters=sum(sizes),
            has_stored_samples=True,
            dependent_draws=self._blocks,
            chain_scores=self.chain_scores,
            parts=() if self._prior() is None else tuple(self._masks()),
            at_prior=self._at_prior,
        )

    def with_prior(self, prior: AbstractPrior) -> "PosteriorSamples":
        """The same samples, which know the prior that they were sampled with.

        Args:
            prior: of the network's parameters.
        """
        return dataclasses.replace(self, prior=prior)

    def _prior(self) -> AbstractPrior | None:
        is_whitened = hasattr(self.network, "parameter_parts")
        return GaussianPrior(1.0) if self.prior is None and is_whitened else self.prior

    def _masks(self) -> dict[str, PyTree[bool]]:
        """Which parameters each part of the network has."""
        first = jax.tree.map(lambda a: jax.device_put(a[0, 0]), self.positions[0])
        return parameter_masks(eqx.combine(first, self.network), first)

    def _at_prior(
        self, parts: Collection[str], key: PRNGKeyArray
    ) -> "PosteriorSamples":
        """Fresh draws of the prior in place of those parts of every sample."""
        prior, params = self._prior(), self.positions[0]
        assert prior is not None
        like = jax.tree.map(lambda a: jnp.asarray(a[0, 0]), params)
        shape = (self.num_chains, self.num_samples)
        draw = lambda key: prior.sample(like, key=key)
        drawn = jax.vmap(jax.vmap(draw))(jax.random.split(key, shape))
        chosen = [mask for name, mask in self._masks().items() if name in parts]
        is_put_back = jax.tree.map(lambda *ats: any(ats), *chosen)
        pick = lambda is_prior, new, old: new if is_prior else old
        put_back = jax.tree.map(pick, is_put_back, drawn, params)
        return dataclasses.replace(self, positions=(put_back, self.positions[1]))

    def labels(self) -> PyTree[str]:
        """Nothing is trained."""
        return jax.tree.map(lambda leaf: FROZEN, self)

    def network_at(
        self, index: int | Array, *, key: PRNGKeyArray | None = None
    ) -> Network:
        """The network of draw `index`.

        Args:
            index: which sample.
            key: of no use here; other random functions have one.
        """
        del key
        chain, sample = self.draw_order()
        number, params = index % self.num_strata, self.positions[0]
        if not isinstance(index, int):
            chain, sample = jnp.asarray(chain), jnp.asarray(sample)
            params = jax.tree.map(jnp.asarray, params)
        take = lambda a: jnp.asarray(a[chain[number], sample[number]])
        return as_network(eqx.combine(jax.tree.map(take, params), self.network))

    def for_draws(self, num_draws: int) -> StoredDraws:
        """The samples behind draws 0 to `num_draws - 1`, on the device.

        Args:
            num_draws: how many; samples repeat once all were used.
        """
        chain, sample = self.draw_order()
        each = np.arange(min(num_draws, self.num_strata))
        params = jax.tree.map(
            lambda a: jax.device_put(a[chain[each], sample[each]][:, None]),
            self.positions[0],
        )
        # One sample of each of as many chains, whose order is the natural one.
        model = PosteriorSamples(
            self.network, self.fixed_likelihood, (params, None), info={}
        )
        each = np.arange(num_draws) % self.num_strata

        def beside_rows(a):
            """(draws, 1, outputs or 1): beside outputs of (draws, rows, outputs)."""
            return jnp.asarray(a[chain[each], sample[each]]).reshape(num_draws, 1, -1)

        scale = jax.tree.map(beside_rows, self.positions[1])
        return StoredDraws(model, eqx.combine(scale, self.fixed_likelihood))

    def thin(self, every: int) -> "PosteriorSamples":
        """Every `every`-th sample, as `sample(..., thin=every)` would have kept.

        Raises:
            ValueError: if that leaves none.
        """
        if not 1 <= every <= self.num_samples:
            raise ValueError(
                f"`every` must be from 1 to the {self.num_samples} samples of a chain, "
                f"got {every}."
            )
        positions = jax.tree.map(lambda a: a[:, every - 1 :: every], self.positions)
        info = {name: thinned(name, a, every) for name, a in self.info.items()}
        return dataclasses.replace(self, positions=positions, info=info)

    def r_hat(self) -> PyTree[Float[Array, "..."]]:
        """R-hat of each entry of a position.

        Hidden units can be permuted and their signs flipped, so that chains that agree
        on every function differ in weights: look at `function_diagnostics` first.

        Raises:
            ValueError: for fewer than 4 samples of each chain.
        """
        return _each_entry(r_hat, self.positions)

    def ess_bulk(self) -> PyTree[Float[Array, "..."]]:
        """Effective sample size of the mean of each entry of a position."""
        return _each_entry(ess_bulk, self.positions)

    def ess_tail(self) -> PyTree[Float[Array, "..."]]:
        """Effective sample size of the outer quantiles of each entry of a position."""
        return _each_entry(ess_tail, self.positions)

    def e_bfmi(self) -> np.ndarray:
        """Energy fraction of missing information of each chain: see `e_bfmi`.

        Raises:
            ValueError: if the kernel has no energy, or one of a batch alone, or for
                fewer than 4 samples.
        """
        return e_bfmi(energy_of(self.info))

    def function_values(
        self, x: PyTree, *, every: int = 1
    ) -> PyTree[Float[Array, "chains samples rows ..."]]:
        """What each network says at some inputs: class probabilities, or its output.

        Args:
            x: a few inputs, rows first.
            every: look at every so many samples only.
        """
        params = jax.tree.map(
            lambda a: jnp.asarray(a[:, every - 1 :: every]), self.positions[0]
        )
        outputs = _outputs_of(self.network, params, jax.tree.map(jnp.asarray, x))
        likelihood = self.likelihood
        if isinstance(likelihood, AbstractClassLikelihood):
            return likelihood.probs(outputs)
        return outputs

    def function_diagnostics(
        self, x: PyTree, *, every: int = 1
    ) -> PyTree[ChainDiagnostics]:
        """Diagnostics of `function_values`, which no permutation of units changes.

        Args:
            x: a few inputs, rows first.
            every: look at every so many samples only.

        Raises:
            ValueError: for fewer than 4 samples of each chain.
        """
        return jax.tree.map(diagnose_chains, self.function_values(x, every=every))

    def chain_scores(self, x: PyTree) -> dict[str, Any]:
        """What the chains say of themselves: of their kernel, and of their agreement.

        Args:
            x: a few inputs, rows first.

        Returns:
            `acceptance_rate`, `num_divergent` and `step_size`, as far as the kernel has
            them; what was noted of each chain; `chains_started`, where they began,
            without which R-hat says little; and, from 4 samples of a chain on, the
            worst `r_hat`, `ess_bulk` and `ess_tail` of `function_values`. Of chains of
            500 samples or more these are of every so many, `samples_diagnosed` of each
            chain: effective sizes are at most about those of so many samples.
        """
        info = {name: np.asarray(a) for name, a in self.info.items()}
        scores: dict[str, Any] = {}
        if "acceptance_rate" in info:
            scores["acceptance_rate"] = float(info["acceptance_rate"].mean())
        if "is_divergent" in info:
            scores["num_divergent"] = int(info["is_divergent"].sum())
        if "step_size" in info:
            scores["step_size"] = float(info["step_size"][:, -1].mean())
        for name, values in self.chain_info.items():
            scores[name] = np.asarray(values).tolist()
        scores["chains_started"] = self.starts
        if self.num_samples >= 4:
            every = max(1, self.num_samples // _DIAGNOSED_SAMPLES)
            found = self.function_diagnostics(x, every=every)
            scores |= worst_of(found)
            if every > 1:
                scores["samples_diagnosed"] = self.num_samples // every
        return scores

    def _blocks(self, num_draws: int) -> Int[np.ndarray, " draws"]:
        """The chain of each draw; of fewer than 4 chains which piece of its chain."""
        number = np.arange(num_draws) % self.num_strata
        chain, sample = (of_draw[number] for of_draw in self.draw_order())
        num_pieces = -(-_LEAST_BLOCKS // self.num_chains)
        return chain * num_pieces + sample * num_pieces // self.num_samples

    def draw_order(self) -> tuple[np.ndarray, np.ndarray]:
        """The chain of each of draws 0 to `num_strata - 1`, and its sample there."""
        number = np.arange(self.num_strata)
        spread = _spread(self.num_samples)
        return number % self.num_chains, spread[number // self.num_chains]


def _each_entry(diagnostic: Callable[[Array], Array], positions: PyTree) -> PyTree:
    """A diagnostic of every number of a position, in one compilation."""
    leaves, treedef = jax.tree.flatten(positions)
    flat = [np.asarray(a).reshape(*a.shape[:2], -1) for a in leaves]
    found = diagnostic(jnp.asarray(np.concatenate(flat, axis=2)))
    ends = np.cumsum([a.shape[2] for a in flat])[:-1].tolist()
    parts = jnp.split(found, ends)
    parts = [a.reshape(leaf.shape[2:]) for a, leaf in zip(parts, leaves, strict=True)]
    return jax.tree.unflatten(treedef, parts)


def _spread(num: int) -> np.ndarray:
    """0 to num - 1 in van der Corput's order: any first few are spread over all."""
    num_bits = max(num - 1, 1).bit_length()
    reversed_bits = np.zeros(2**num_bits, dtype=int)
    for bit in range(num_bits):
        reversed_bits |= (np.arange(2**num_bits) >> bit & 1) << (num_bits - 1 - bit)
    return reversed_bits[reversed_bits < num]


@eqx.filter_jit
def _outputs_of(network: PyTree, params: PyTree, x: PyTree[Array]) -> PyTree[Array]:
    """The outputs, as (chains, samples, rows, ...)."""
    call = lambda one: call_network(as_network(eqx.combine(one, network)), x).output
    return jax.lax.map(lambda chain: jax.lax.map(call, chain), params)
