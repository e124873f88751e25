"""A small fit whose posterior does something, and parts of it to break."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.random as jr

import ornstein as orn
from ornstein.functions import SDEBlock
from ornstein.sde import Fixed, ReversibleHeun

DATA = orn.data.load("toy/cos")


def train_small() -> orn.Fit:
    """As the preset of `toy/cos`, on a smaller network for fewer steps."""
    model = orn.SDEBNN.for_vectors(
        1,
        1,
        width_sizes=(6,),
        drift_widths=(16, 16),
        num_inducing=8,
        start_width=None,
        prior=orn.WeightPrior(sigma=0.2, scale=1.0, is_relative=False),
        integrator=orn.Integrator(ReversibleHeun(), Fixed(0.2)),
        key=jr.key(0),
    )
    return orn.fit(
        model,
        DATA.train,
        orn.Gaussian(0.1414),
        key=jr.key(1),
        num_epochs=400,
        learning_rate=1e-2,
        num_draws=4,
    )


def with_model(fit: orn.Fit, model: Any) -> orn.Fit:
    """The fit with another model, and its history."""
    return orn.Fit(model, fit.likelihood, fit.state, fit.history)


def over_blocks(fit: orn.Fit, change: Callable[[SDEBlock], SDEBlock]) -> orn.Fit:
    """The fit with each solve changed."""
    is_block = lambda node: isinstance(node, SDEBlock)
    each = lambda node: change(node) if is_block(node) else node
    return with_model(fit, jax.tree.map(each, fit.model, is_leaf=is_block))


def scaled(fit: orn.Fit, where: Callable[[SDEBlock], Any], factor: float) -> orn.Fit:
    """The fit with some arrays of each solve multiplied."""
    times = lambda tree: jax.tree.map(lambda a: factor * a, tree)
    return over_blocks(fit, lambda block: eqx.tree_at(where, block, replace_fn=times))
