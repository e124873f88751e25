"""The prior over the weights of an SDE-BNN: an Ornstein-Uhlenbeck process."""

import equinox as eqx
import jax

from ..._sentence import Choice, OptionError
from ..._types import Params, PyTree
from ...nn import fan_ins

_FLAGS = {"sigma": "{sigma}", "scale": "{prior_scale}"}
"""What a command line calls its fields."""
_NO_NOISE = Choice("`without_noise(model)`", "{model} deterministic {network} odenet")


class WeightPrior(eqx.Module):
    r"""The prior over the weights: where they start, and how they move.

    $w_0 \sim N(0, \rho^2)$ and $dw = \theta (m - w)\,dt + \sigma\,dB$.

    Attributes:
        sigma: the diffusion.
        rate: $\theta$; 0 for Brownian motion.
        scale: standard deviation of $w_0$.
        is_relative: whether `sigma` is in units of $\rho$, and `scale` in units of
            1/√fan-in, for each leaf; otherwise both are absolute.
        reverts_to_start: whether $m$ is $w_0$ rather than 0.
        window: the depths between which weights have noise.
    """

    sigma: float = 0.2
    rate: float = 1.0
    scale: float = 2.0
    is_relative: bool = eqx.field(static=True, default=True)
    reverts_to_start: bool = eqx.field(static=True, default=False)
    window: tuple[float, float] = eqx.field(static=True, default=(0.0, 1.0))

    def __check_init__(self):
        begin, end = self.window
        if not 0 <= begin < end <= 1:
            raise OptionError(
                "{} must be two depths with 0 <= begin < end <= 1, got {}; for weights "
                "without noise use {}.",
                Choice("`window`", "{noise_window}"),
                Choice(f"{self.window}", f"{begin:g}-{end:g}"),
                _NO_NOISE,
            )
        for name in ("sigma", "scale"):
            if getattr(self, name) <= 0:
                raise OptionError(
                    "{} must be positive, got {}; for weights without noise use {}.",
                    Choice(f"`{name}`", _FLAGS[name]),
                    getattr(self, name),
                    _NO_NOISE,
                )
        if self.rate < 0:
            raise OptionError("{rate} must be at least 0, got {}.", self.rate)

    def scales(
        self, dynamics: eqx.Module, weights: Params
    ) -> tuple[PyTree[float], PyTree[float]]:
        r"""$\rho$ and $\sigma$ for each leaf of the random weights.

        Args:
            dynamics: f_h.
            weights: those of its leaves that are random, `None` elsewhere.
        """
        if not self.is_relative:
            same = lambda value: jax.tree.map(lambda _: value, weights)
            return same(self.scale), same(self.sigma)
        start = jax.tree.map(
            lambda leaf, n: None if leaf is None else self.scale / n**0.5,
            weights,
            fan_ins(dynamics),
            is_leaf=lambda node: node is None,
        )
        return start, jax.tree.map(lambda s: self.sigma * s, start)
