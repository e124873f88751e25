"""Samples and draws for ArviZ's diagnostics, plots and comparisons."""

from typing import Any

import jax
import numpy as np

from .._kinds import check_arrays, check_key
from .._types import PRNGKeyArray, PyTree
from ..functions import PosteriorSamples, is_of_batches, whole_rounds
from ..likelihood import (
    AbstractClassLikelihood,
    CustomLikelihood,
    OverTime,
    Targets,
    Weighted,
)
from ..prediction import Fitted, Prediction, check_fitted, predict

_STATS = {
    "is_divergent": "diverging",
    "energy": "energy",
    "acceptance_rate": "acceptance_rate",
    "num_gradients": "n_steps",
    "step_size": "step_size",
}
_BATCH_STATS = _STATS | {"energy": "batch_energy"}
"""ArviZ's E-BFMI would be of the noise of batches."""

# As many as make the tail of leave-one-out's weights, 3 sqrt(draws), dozens of draws.
_NUM_DRAWS = 500


def to_arviz(
    fit: Fitted | Prediction,
    *,
    x: PyTree | None = None,
    y: Targets | None = None,
    num_draws: int | None = None,
    key: PRNGKeyArray | None = None,
) -> Any:
    r"""A fit as ArviZ's `InferenceData`.

    With `x` and `y` there is what `arviz.loo`, `waic` and `compare` need:
    `log_likelihood` has $\log p(y_i | f_s(x_i))$ of each draw and row, in nats, the
    columns of a row summed, so that leaving one out leaves a row out. Their estimates
    take the draws for the posterior given these very rows: give the training data. Of
    variational draws they are as good as the approximation, which no Pareto k says.

    Needs the extra: `pip install ornstein[arviz]`.

    Args:
        fit: what `sample` or `fit` returned; or a `Prediction` of the rows, with its
            draws.
        x: inputs, rows first: those of `y`, or a few. What the draws say there is
            added to the posterior as `function` (class probabilities, or outputs),
            whose R-hat means more than that of weights. A `fit` has nothing else there.
        y: their targets, as the likelihood takes them, in the units in which it
            learned.
        num_draws: of a fit that is no samples: how many make its one chain; 500 by
            default, or as many more as use all members equally.
        key: of these draws; and of `posterior_predictive`, which samples and
            predictions have if it is given.

    Returns:
        An `InferenceData` with `posterior` (of samples each parameter under its path, a
        sampled scale as `likelihood.log_scale`; and `function`). Of samples also
        `sample_stats`: the kernel's info, under ArviZ's names (`diverging`, `n_steps`)
        where it has them, and `batch_energy` where the energy is estimated from a
        batch. With `x` also `constant_data`; with `y` `observed_data` and
        `log_likelihood`; with a key `posterior_predictive`, targets drawn with their
        noise (a `CustomLikelihood` has none). Targets are called `y`, of shape (chain,
        draw, row), or (chain, draw, row, output) where they have several columns.

    Raises:
        ImportError: without ArviZ.
        TypeError: for what is no fit, and arguments of another type.
        ValueError: for `y` without its rows or of another length, targets that the
            likelihood has no probability for, sequences, and arguments that this fit
            has no use for.

    Example:
        ```python
        of = lambda samples: to_arviz(samples, x=train.x, y=train.y)
        arviz.compare({"wide": of(wide), "narrow": of(narrow)})
        ```
    """
    try:
        import arviz  # extra `arviz`: seconds to import
    except ImportError as error:
        raise ImportError(
            "`to_arviz` needs ArviZ: install it with `pip install 'ornstein[arviz]'`."
        ) from error
    noise_key = None
    if key is not None:
        check_key(key)
        key, noise_key = jax.random.split(key)
    prediction = _prediction(fit, x, num_draws, key)
    groups: dict[str, Any] = {"posterior": {}}
    if isinstance(fit, PosteriorSamples):
        params, scale = fit.positions
        groups["posterior"] = _by_path(params, "") | _by_path(scale, "likelihood.")
        names = _BATCH_STATS if is_of_batches(fit.info) else _STATS
        stats = {names.get(n, n): np.asarray(a) for n, a in fit.info.items()}
        groups["sample_stats"] = stats
    if prediction is None:
        if y is not None or key is not None:
            name = "y" if y is not None else "key"
            raise ValueError(f"`{name}` is for rows: give their inputs, `x`, too.")
        return arviz.from_dict(**groups)

    def in_chains(of_draws: Any) -> np.ndarray:
        return _in_chains(fit, np.asarray(of_draws))

    outputs, likelihood = prediction.outputs, prediction.likelihood
    assert outputs is not None
    is_of_classes = isinstance(likelihood, AbstractClassLikelihood)
    function = likelihood.probs(outputs) if is_of_classes else outputs
    values = jax.tree.map(in_chains, function)
    groups["posterior"] |= _numbered(values, "function")
    if x is not None:
        groups["constant_data"] = _numbered(jax.tree.map(np.asarray, x), "x")
    if y is not None:
        if isinstance(fit.likelihood, Weighted):
            raise ValueError(
                "Rows that count more or less than one cannot be left out one at a "
                "time: give a fit of rows without weights."
            )
        _check_targets(prediction, y)
        log_prob = likelihood.log_prob(outputs, y)
        groups["log_likelihood"] = {"y": in_chains(log_prob)}
        groups["observed_data"] = {"y": _squeezed(np.asarray(y), num_leading=1)}
    if noise_key is not None and not isinstance(likelihood, CustomLikelihood):
        drawn = in_chains(prediction.sample(key=noise_key))
        groups["posterior_predictive"] = {"y": _squeezed(drawn, num_leading=3)}
    return arviz.from_dict(**groups, dims=_dims(groups))


def _prediction(
    fit: Fitted | Prediction,
    x: PyTree | None,
    num_draws: int | None,
    key: PRNGKeyArray | None,
) -> Prediction | None:
    """All draws at the rows; `None` for samples, of which no rows were given."""
    has_own = isinstance(fit, PosteriorSamples | Prediction)
    if has_own and num_draws is not None:
        raise ValueError(
            f"`num_draws` is for fits that can be drawn from, and this "
            f"`{type(fit).__name__}` has its own draws: leave it out."
        )
    if isinstance(fit, Prediction):
        prediction = _of_rows(fit, x)
    elif isinstance(fit, PosteriorSamples):
        if x is None:
            return None
        # A stored sample has no randomness: the key is of no use to it.
        every = {"key": jax.random.key(0), "num_draws": fit.num_strata}
        prediction = predict(fit, x, **every)
    else:
        check_fitted(fit)
        if x is None:
            raise ValueError(
                "Draws of a fit need rows, at which they are compared: give `x`."
            )
        check_key(key)
        assert key is not None
        if num_draws is None:
            num_draws = whole_rounds(_NUM_DRAWS, fit.model.num_strata)
        prediction = predict(fit, x, key=key, num_draws=num_draws)
    if isinstance(prediction.likelihood, OverTime):
        raise ValueError(
            "`to_arviz` leaves out one row at a time, and draws for a sequence are "
            "told by that very sequence: score others by `orn.evaluate`."
        )
    return prediction


def _of_rows(prediction: Prediction, x: PyTree | None) -> Prediction:
    if prediction.outputs is None:
        raise ValueError(
            "ArviZ needs the draws of a `Prediction`, which were not kept: call "
            "`predict` with `keep_draws=True`."
        )
    if x is not None:
        check_arrays("x", x)
        lengths = {len(leaf) for leaf in jax.tree.leaves(x)}
        if lengths != {prediction.num_rows}:
            raise ValueError(
                f"Got `x` of {sorted(lengths)} rows for a prediction of "
                f"{prediction.num_rows}: give the inputs that it is of."
            )
    return prediction


def _check_targets(prediction: Prediction, y: Any) -> None:
    check_arrays("y", [y])
    prediction.likelihood.check_targets(y, prediction.num_outputs)
    if len(y) != prediction.num_rows:
        raise ValueError(
            f"Got {len(y)} targets for {prediction.num_rows} rows: give the targets of "
            "the same inputs, in the same order."
        )


def _in_chains(fit: Any, of_draws: np.ndarray) -> np.ndarray:
    """What each draw gave, where its sample lies; other draws are one chain."""
    if not isinstance(fit, PosteriorSamples):
        return of_draws[None]
    lengths = (fit.num_chains, fit.num_samples)
    placed = np.empty((*lengths, *of_draws.shape[1:]), of_draws.dtype)
    placed[fit.draw_order()] = of_draws
    return placed


def _squeezed(values: np.ndarray, *, num_leading: int) -> np.ndarray:
    """A single column of targets has no axis of its own."""
    is_column = values.ndim == num_leading + 1 and values.shape[-1] == 1
    return values[..., 0] if is_column else values


def _dims(groups: dict[str, dict[str, np.ndarray]]) -> dict[str, list[str]]:
    """Names of axes: rows are the same ones in all groups, and so are columns."""
    constant = groups.get("constant_data", {})
    values = [name for name in groups["posterior"] if name.startswith("function")]
    dims = {name: ["row"] for name in [*values, *constant]}
    observed, drawn = groups.get("observed_data"), groups.get("posterior_predictive")
    has_columns = (observed is not None and observed["y"].ndim == 2) or (
        drawn is not None and drawn["y"].ndim == 4
    )
    return dims | {"y": ["row", "output"] if has_columns else ["row"]}


def _numbered(tree: PyTree, name: str) -> dict[str, np.ndarray]:
    """The leaves under a name, which several share with a number behind."""
    leaves = jax.tree.leaves(tree)
    if len(leaves) == 1:
        return {name: np.asarray(leaves[0])}
    return {f"{name}_{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}


def _by_path(tree: PyTree, prefix: str) -> dict[str, np.ndarray]:
    """Each leaf under a name such as `layers.0.weight`."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {
        prefix + jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(a)
        for path, a in leaves
    }
