"""Bayes by Backprop: any network with independent random weights."""

import math
from collections.abc import Callable, Collection
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._kinds import check_kind
from ..._types import Array, Float, Params, PRNGKeyArray, PyTree
from ...network import (
    Network,
    as_network,
    call_network,
    check_parameters,
    parameter_masks,
    split_where,
    with_named_state,
)
from ...prior import AbstractPrior, GaussianPrior
from .._base import AbstractRandomFunction, Draw, draw_key, label_tree, no_local_kl
from .._noise_scale import median_entry
from .._posterior_parts import PosteriorParts
from ..depth import has_integrator
from ._deterministic import Deterministic
from ._map import MAP
from ._variational import (
    AbstractFamily,
    AbstractWeightKL,
    AnalyticKL,
    NormalFamily,
    PriorFamily,
)
from ._weight_noise import (
    AbstractWeightNoise,
    Flipout,
    LocalReparameterised,
    Reparameterised,
)

InitScale: TypeAlias = float | Callable[[Float[Array, "..."]], Float[Array, "..."]]
"""A standard deviation, or a map from a leaf's means to one for each."""

_NO_KL = 0.01
"""Nats: by Pinsker's inequality a weight's q and p then differ by at most 0.07 in total
variation."""

_POINTS_ARE_GIVEN = (
    "The bound is one on the evidence of the random weights, given the others at their "
    "mode: it does not compare with the bound of a posterior over all weights."
)


class MeanField(AbstractRandomFunction):
    r"""A network with independent random weights: Bayes by Backprop.

    The posterior $q(w | \theta)$ minimises the free energy $\mathrm{KL}(q \| p) - E_q
    \log p(D | w)$ (equation 3 of the reference; `fit` divides it by the size of the
    data). Its means start at the network's own parameters: a trained network
    initialises it, a new one starts it as deterministic training would.

    Args:
        network: any Equinox module of a batch (rows first), or an `eqx.nn.MLP` or
            `eqx.nn.Linear`. `nn.PerExample` and `nn.ChannelsFirst` adapt others.
        prior: of the random parameters.
        where: the network to its subtree (or a tuple of them) that is random, such as
            `lambda net: net.layers[-1]`; all of it by default. Other parameters are
            trained as points.
        has_prior_on_points: whether those points have the prior too. They then go to
            their mode, as those of `MAP` do: their energy $-\log p$ is `Draw.energy`,
            which the loss counts beside the KL, at the KL weight. It is in no KL and no
            bound that is reported: these are of the random part, given the points, and
            importance weighting bounds the joint density of data and points.
        init_scale: the posterior's standard deviations at the start, in the units of
            the weights; or a map from a leaf's means to them, such as
            `lambda mean: 0.1 * jnp.abs(mean) + 1e-3`. At 0.01, a layer of 1,000 inputs
            of size one has noise of 0.3 on its outputs: small beside the signal, so
            that training starts as that of the network itself.
        family: made of means and standard deviations: `NormalFamily.around`, or a
            function that returns an `AbstractFamily` of one's own.
        noise: how weights are drawn in training. In prediction, one draw serves
            all rows, whatever it is.
        kl: how the KL is estimated.

    Raises:
        TypeError: if the network cannot be called, the prior is none, or the noise
            needs another family.
        ValueError: for no parameters, a prior of the wrong shape, or an `init_scale`
            that is not positive.

    References:
        Blundell, Cornebise, Kavukcuoglu & Wierstra (2015), "Weight Uncertainty in
        Neural Networks".
    """

    family: AbstractFamily
    rest: PyTree
    prior: AbstractPrior
    noise: AbstractWeightNoise
    kl: AbstractWeightKL
    num_strata: int = 1
    num_members: int = eqx.field(static=True, default=1)
    has_prior_on_points: bool = eqx.field(static=True, default=False)

    def __init__(
        self,
        network: Network,
        prior: AbstractPrior | None = None,
        *,
        where: Callable[[Any], PyTree] | None = None,
        has_prior_on_points: bool = False,
        init_scale: InitScale = 0.01,
        family: Callable[[Params, Params], AbstractFamily] = NormalFamily.around,
        noise: AbstractWeightNoise | None = None,
        kl: AbstractWeightKL | None = None,
    ):
        as_network(network)
        params, self.rest = split_where(with_named_state(network), where)
        check_parameters(
            params, "to make random (floating-point arrays chosen by `where`)"
        )
        prior = GaussianPrior(1.0) if prior is None else prior
        check_kind("prior", prior, AbstractPrior, "orn.GaussianPrior(1.0)")
        self.prior = prior
        points = self._points() if has_prior_on_points else None
        self.has_prior_on_points = bool(jax.tree.leaves(points))
        has_prior = self.has_prior_on_points
        self.prior.check(eqx.combine(params, points) if has_prior else params)
        params = jax.tree.map(jnp.asarray, params)
        scale = jax.tree.map(lambda mean: _start_scale(init_scale, mean), params)
        self.family = family(params, scale)
        self.noise = Reparameterised() if noise is None else noise
        self.noise.check(self.family)
        in_layers = isinstance(self.noise, LocalReparameterised | Flipout)
        if in_layers and has_integrator(network):
            raise ValueError(
                f"`{type(self.noise).__name__}` has noise at each layer's output, "
                "and the steps of a differential equation must meet the same weights: "
                "use `Reparameterised()`."
            )
        self.kl = AnalyticKL() if kl is None else kl

    def __call__(
        self,
        x: PyTree[Array],
        *,
        key: PRNGKeyArray,
        index: int | Array | None = None,
        state: eqx.nn.State | None = None,
    ) -> Draw:
        """See `AbstractRandomFunction`."""
        key = draw_key(key, index)
        if index is None:
            num_rows = jax.tree.leaves(x)[0].shape[0]
            network, params = self.noise.draw(
                self.family, self.rest, num_rows=num_rows, key=key
            )
        else:
            params = self.family.sample(key=key)
            network = self.with_weights(params)
        output, state, report = call_network(network, x, state)
        kl = self.kl(self.family, self.prior, params)
        has_prior = self.has_prior_on_points
        is_shared = isinstance(self.noise, Reparameterised)
        return Draw(
            output=output,
            kl=kl,
            local_kl=no_local_kl(x),
            state=state,
            terms=self._terms(kl, params),
            report=report,
            log_ratio="shared" if is_shared and self.kl.is_log_ratio else None,
            energy=-self.prior.log_prob(self._points()) if has_prior else None,
        )

    def network_at(self, index: int | Array, *, key: PRNGKeyArray) -> Network:
        """The network of draw `index`: that of `__call__` with the same key.

        Args:
            index: which draw.
            key: which functions.
        """
        return self.with_weights(self.family.sample(key=draw_key(key, index)))

    def with_weights(self, params: Params) -> Network:
        """The network with these values of its random parameters."""
        return as_network(eqx.combine(params, self.rest))

    def member(self, number: int | Array) -> AbstractRandomFunction:
        """Itself: it is trained alone."""
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        """Its KL, its scales in units of the weights, and the network's parts."""
        has_mean = isinstance(self.family, NormalFamily)
        return PosteriorParts(
            notes=(_POINTS_ARE_GIVEN,) if self.has_prior_on_points else (),
            kl_record="kl",
            noise_scales=self._noise_scales,
            share_at_prior=self._share_at_prior if self._has_kl_by_weight else None,
            parts=tuple(self._masks()),
            at_prior=self._at_prior,
            held=lambda model: model.family,
            without_noise=self._without_noise if has_mean else None,
            noise_free_twin=self._noise_free_twin if has_mean else None,
        )

    def _points(self) -> Params:
        """The parameters that are not random."""
        return split_where(self.rest, None)[0]

    def _masks(self) -> dict[str, PyTree[bool]]:
        """Which weights each part of the network has; a family of one's own has one."""
        family = self.family
        family = family.others if isinstance(family, PriorFamily) else family
        if isinstance(family, NormalFamily):
            return parameter_masks(eqx.combine(family.mean, self.rest), family.mean)
        like = eqx.filter_eval_shape(family.sample, key=jax.random.key(0))
        return {"weights": jax.tree.map(lambda leaf: True, like)}

    def _at_prior(self, parts: Collection[str], key: PRNGKeyArray) -> "MeanField":
        del key
        masks = self._masks()
        chosen = [mask for name, mask in masks.items() if name in parts]
        is_put_back = jax.tree.map(lambda *ats: any(ats), *chosen)
        family = PriorFamily(self.family, self.prior, is_put_back)
        return MeanField._of(self, family=family, noise=Reparameterised())

    def _without_noise(self) -> Deterministic:
        assert isinstance(self.family, NormalFamily)
        return Deterministic(self.with_weights(self.family.mean))

    def _noise_free_twin(self) -> MAP:
        assert isinstance(self.family, NormalFamily)
        if not self.has_prior_on_points:
            return MAP(self.family.mean, self.rest, self.prior)
        points, rest = split_where(self.rest, None)
        return MAP(eqx.combine(self.family.mean, points), rest, self.prior)

    @staticmethod
    def _of(model: "MeanField", **changes: Any) -> "MeanField":
        return eqx.tree_at(
            lambda m: tuple(getattr(m, name) for name in changes),
            model,
            tuple(changes.values()),
        )

    def _terms(self, kl: Float[Array, ""], params: Params) -> dict[str, Array]:
        """The KL of each part of the network, in closed form where there is one."""
        family, masks = self.family, self._masks()
        if len(masks) == 1:
            value = family.kl(self.prior)
            return {_term(name): kl if value is None else value for name in masks}
        assert isinstance(family, NormalFamily | PriorFamily)
        terms = {}
        for name, mask in masks.items():
            part = family.only(mask)
            value = part.kl(self.prior)
            if value is None:
                value = self.kl(part, self.prior, eqx.filter(params, mask))
            terms[_term(name)] = value
        return terms

    def _noise_scales(self) -> dict[str, float]:
        if not isinstance(self.family, NormalFamily):
            return {}
        means = jax.tree.leaves(self.family.mean)
        squares = np.concatenate([np.ravel(mean) ** 2 for mean in means])
        size = float(np.sqrt(np.mean(squares, dtype=np.float64)))
        if size == 0:
            return {}
        return {"scale_over_weights": median_entry(self.family.scale) / size}

    @property
    def _has_kl_by_weight(self) -> bool:
        is_normal = isinstance(self.family, NormalFamily)
        return is_normal and isinstance(self.prior, GaussianPrior)

    def _share_at_prior(self) -> tuple[float, int]:
        family, prior = self.family, self.prior
        assert isinstance(family, NormalFamily)
        assert isinstance(prior, GaussianPrior)

        def kl(mean: Array, scale: Array) -> Array:
            return prior.leaf_cross_entropy(mean, scale) - 0.5 * jnp.log(
                2 * math.pi * math.e * scale**2
            )

        kls = jax.tree.leaves(jax.tree.map(kl, family.mean, family.scale))
        is_at_prior = np.concatenate([np.ravel(a) for a in kls]) < _NO_KL
        return float(np.mean(is_at_prior)), is_at_prior.size

    def labels(self) -> PyTree[str]:
        """Weights: the family's arrays and the points; the prior is frozen."""
        return label_tree(
            self,
            "weights",
            frozen=lambda model: (model.prior, model.noise, model.kl),
        )


def _term(part: str) -> str:
    """What the KL of a part of the network is called: that of a start as elsewhere."""
    return "kl_initial" if part == "start" else f"kl_{part}"


def _start_scale(init_scale: InitScale, mean: Float[Array, "*shape"]) -> Array:
    value = init_scale(mean) if callable(init_scale) else init_scale
    if not np.all(np.isfinite(np.asarray(value)) & (np.asarray(value) > 0)):
        raise ValueError(
            f"`init_scale` must be positive, got {init_scale}: it is the posterior's "
            "standard deviation at the start; for weights that are points, choose the "
            "others by `where`."
        )
    return jnp.broadcast_to(jnp.asarray(value, mean.dtype), mean.shape)
