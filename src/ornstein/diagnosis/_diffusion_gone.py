"""A posterior whose scales have shrunk to nothing."""

import jax
import numpy as np

from .._types import PyTree
from ..functions import ImplicitBNN, LatentSDE, MeanField, NormalFamily, softplus
from ._base import Checked
from ._evidence import Case

GONE = 1e-3
"""In units of the prior's scale, or of the weights': noise of a thousandth moves the
output of a layer by a thousandth of its size, which nothing downstream tells from
rounding in training."""


def diffusion_gone(case: Case) -> Checked:
    """Compare the scales of the noise with what it is added to."""
    if isinstance(case.model, LatentSDE):
        return _of_path(case, case.model)
    numbers = _scales(case)
    gone = {name: value for name, value in numbers.items() if value < GONE}
    if not gone:
        return Checked(numbers)
    seen = " and ".join(f"{name} {value:.1g}" for name, value in gone.items())
    return Checked(
        numbers,
        f"The randomness is gone: {seen}, where 1 is the size of the prior's or of the "
        "weights' own. Draws are then one network; give a larger scale (`WeightPrior("
        "sigma=...)`, `start_width`, `init_scale`), or train with a KL weight of 1, "
        "which holds it up.",
    )


def _of_path(case: Case, model: LatentSDE) -> Checked:
    share = model.noise_share(case.x.ts[0], key=case.key)
    most = float(np.max(np.asarray(share)))
    if not most < GONE:
        return Checked({"noise_share": most})
    return Checked(
        {"noise_share": most},
        f"The diffusion is gone: noise makes at most {most:.1g} of the spread of the "
        "prior's paths. They are those of an ordinary differential equation; give "
        "`NetDiffusion` a higher lower bound or a fixed `ConstantDiffusion`, or start "
        "from more noise.",
    )


def _scales(case: Case) -> dict[str, float]:
    model, numbers = case.model, {}
    if case.noisy_blocks:
        sigmas = [_ratio(b.process.scale, b.initial_scale) for b in case.noisy_blocks]
        numbers["sigma_over_prior"] = min(sigmas)
        starts = [
            _ratio(jax.tree.map(softplus, b.rho), b.initial_scale)
            for b in case.noisy_blocks
            if b.rho is not None
        ]
        if starts:
            numbers["start_over_prior"] = min(starts)
    elif isinstance(model, MeanField) and isinstance(model.family, NormalFamily):
        means = jax.tree.leaves(model.family.mean)
        squares = np.concatenate([np.ravel(mean) ** 2 for mean in means])
        size = float(np.sqrt(np.mean(squares, dtype=np.float64)))
        if size > 0:
            numbers["scale_over_weights"] = _median(model.family.scale) / size
    elif isinstance(model, ImplicitBNN):
        numbers["scale_over_prior"] = _median(model.mixture.scale) / model.prior_scale
    return numbers


def _ratio(scale: PyTree, unit: PyTree) -> float:
    """The median over leaves of one leaf's median scale in its own unit."""
    pairs = zip(jax.tree.leaves(scale), jax.tree.leaves(unit), strict=True)
    return float(np.median([np.median(s) / np.median(u) for s, u in pairs]))


def _median(tree: PyTree) -> float:
    leaves = [np.ravel(np.asarray(leaf)) for leaf in jax.tree.leaves(tree)]
    return float(np.median(np.concatenate(leaves)))
