"""Tables in memory, learned from as `ornstein train` and `sample` would."""

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._kinds import check_kind
from .._sentence import OptionError
from .._types import Float, PRNGKeyArray, Shaped
from ..data import Data, Inputs, Split, TableEncoding, frame_inputs
from ..functions import PosteriorSamples
from ..likelihood import Weighted, WeightedTargets
from ..network import initial_state
from ..potential import Potential
from ..prediction import Fitted, FittedModel, predict
from ._check_sampling import check_read, check_sampling
from ._hand_over import MAX_CHAIN_ROWS
from ._recipe import Recipe
from ._run_prediction import RunPrediction
from ._run_sampling import potential_arguments, run_sampling
from ._sampling import SampleRecipe, preset_sampling
from ._sampling_options import KernelName
from ._training import Keys, Prepared, prepare, rebuild, train
from .models import MODELS, trained_like
from .options import DataOptions, SeriesOptions
from .presets import IN_MEMORY, preset_recipe

if typing.TYPE_CHECKING:
    import pandas as pd

_BLOCK = 64
"""Rows of a prediction that are computed together: a row's numbers are then the same
bits whatever rows stand beside it."""
_MOST_REPEATS = 1000
_FEW_ROWS, _FEW_UNIT = 96, 32
"""Rows that are one minibatch with their padding (its preset has 100 rows or more): a
program takes seconds to compile, and a row of weight 0 no time that one could tell."""
_MANY_ROWS = 4096
"""Of more, larger blocks are worth other last bits."""


def table_methods() -> tuple[str, ...]:
    """What learns a table: `auto`, families, and kernels of chains."""
    families = [name for name, kind in MODELS.items() if not kind.takes_series]
    return ("auto", *families, *typing.get_args(KernelName))


def table_recipe(
    method: str, num_rows: int, options: Mapping[str, Any], *, seed: int
) -> Recipe | SampleRecipe:
    """What a method means for a table of so many rows.

    Args:
        method: of `table_methods()`; `auto` is what `ornstein train` does by default.
        num_rows: that are learned from.
        options: of `ornstein train`, or of `ornstein sample` for chains, by name.
        seed: of everything random.

    Raises:
        ValueError: for another method, or options that it has not or does not read.
    """
    if method not in table_methods():
        raise ValueError(
            f"`method` is {method!r}, and is one of {', '.join(table_methods())}."
        )
    _check_options(method, options)
    if method == "auto":
        method = "hmc" if num_rows <= MAX_CHAIN_ROWS else "ensemble"
    if method in MODELS:
        own = {n: options[n] for n in ("network", "optimiser") if n in options}
        recipe = preset_recipe(IN_MEMORY, model=typing.cast(Any, method), **own)
        if method == "ensemble" and "num_members" in options:  # each counts once
            recipe = recipe.changed(test_draws=options["num_members"])
        return recipe.changed(**{**options, "seed": seed})
    kernel = typing.cast(KernelName, method)
    network = options.get("network")
    # Folds of one table share their programs, and these their length.
    found = preset_sampling(IN_MEMORY, kernel, network, num_data=_padded(num_rows))
    if options.get("start_from") not in (None, "prior", "members"):
        raise OptionError(
            "{start_from} {!r} is a run's folder, and chains of a table in memory "
            "start from 'prior' or 'members'.",
            options["start_from"],
        )
    changed = found.changed(**{**options, "seed": seed})
    check_read(changed.sampling, found.sampling)
    check_sampling(changed.sampling)
    return changed


class TablePrediction(NamedTuple):
    """A prediction of a few more rows than were asked for.

    Attributes:
        whole: of all.
        num_rows: that were asked for, and come first.
    """

    whole: RunPrediction
    num_rows: int

    def asked(self, values: Shaped[Any, "rows ..."]) -> Shaped[np.ndarray, "..."]:
        """Those of the rows that were asked for.

        Args:
            values: of all rows, such as `whole.mean`.
        """
        return np.asarray(values)[: self.num_rows]


@dataclasses.dataclass(frozen=True)
class TableFit:
    """A fit of a table in memory, which pickles.

    Attributes:
        recipe: what was fitted.
        prepared: what it built; its data have no rows.
        fit: the trained model or samples.
    """

    recipe: Recipe | SampleRecipe
    prepared: Prepared
    fit: Fitted

    def predict(
        self, frame: "pd.DataFrame", *, num_draws: int | None = None
    ) -> TablePrediction:
        """Predict rows, given and answered in the data's own units.

        Args:
            frame: with the columns that were learned from.
            num_draws: functions averaged over; the recipe's own number by default.
        """
        data, recipe = self.prepared.data, self.prepared.recipe
        inputs = frame_inputs(frame, data)
        draws = recipe.training.test_draws if num_draws is None else num_draws
        check_kind("num_draws", draws, int, "100")
        return _predicted(self.fit, inputs, data, draws, Keys.of(recipe).test)

    def __getstate__(self) -> dict[str, Any]:
        """Options, names and numbers: no code."""
        return {
            "recipe": self.recipe.to_json(),
            "data": self.prepared.data,
            "fit": _written(self.fit),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """From what `__getstate__` gives."""
        saved, data = state["recipe"], state["data"]
        kind = SampleRecipe if "sampling" in saved else Recipe
        recipe = kind.from_json(saved)
        plain = recipe.recipe if isinstance(recipe, SampleRecipe) else recipe
        prepared = rebuild(plain, data)
        found = {"recipe": recipe, "prepared": prepared}
        found["fit"] = _read(state["fit"], recipe, prepared)
        for name, value in found.items():
            object.__setattr__(self, name, value)


def fit_table(recipe: Recipe | SampleRecipe, data: Data) -> TableFit:
    """Learn as a recipe says, without a folder.

    Args:
        recipe: as `table_recipe` gives it.
        data: whose training rows are learned from; rows may be weighted.

    Raises:
        ValueError: for options that cannot work with these data.
    """
    targets = data.train.y
    plain, weight = data, np.ones(len(data.train))
    if isinstance(targets, WeightedTargets):
        weight = np.asarray(targets.weight)
        split = Split(data.train.x, targets.y)
        plain = dataclasses.replace(data, train=split, test=split)
    if isinstance(recipe, Recipe):
        recipe = _at_mean_weight(recipe, float(np.mean(weight)))
    own = recipe.recipe if isinstance(recipe, SampleRecipe) else recipe
    prepared = prepare(own, plain)
    weighted = prepared
    if plain is not data:
        likelihood = Weighted(prepared.likelihood)
        weighted = prepared._replace(data=data, likelihood=likelihood)
    found: Any = None
    if isinstance(recipe, SampleRecipe):
        num_data = max(1, round(float(np.sum(weight))))
        found = run_sampling(recipe, weighted, None, num_data=num_data)
        if plain is not data:
            found = _unweighted(found)
    else:
        trained = train(weighted)
        likelihood = trained.likelihood
        if isinstance(likelihood, Weighted):
            likelihood = likelihood.base
        found = FittedModel(trained.model, likelihood, trained.state)
    return TableFit(recipe, prepared._replace(data=_without_rows(plain)), found)


def _at_mean_weight(recipe: Recipe, mean: float) -> Recipe:
    """With SGD's rate for gradients of means over weighted rows, padding among them.

    Adam's steps, and its decay of weights, do not depend on the gradients' unit.
    """
    if recipe.training.optimiser == "nesterov":
        rate, decay = recipe.training.learning_rate, recipe.training.weight_decay
        return recipe.changed(learning_rate=rate / mean, weight_decay=decay * mean)
    return recipe


def _check_options(method: str, options: Mapping[str, Any]) -> None:
    """Refuse what a table in memory has no use for, or other arguments say."""
    if not isinstance(options, Mapping) or not all(isinstance(n, str) for n in options):
        raise TypeError(
            f"`options` are by name, such as {{'width': '50'}}, got {options!r}."
        )
    files = {f.name for part in (DataOptions, SeriesOptions) for f in fields(part)}
    files |= {"preset"}
    for name in options:
        if name in ("model", "kernel"):
            raise ValueError(
                f"`options` have {name!r}, and `method` is {method!r}: give "
                f"`method={options[name]!r}`."
            )
        if name == "seed":
            raise ValueError("`options` have 'seed': give `random_state` instead.")
        if name == "patience" and options[name] is not None:
            raise ValueError(
                "`options` have 'patience', which judges epochs by rows that are held "
                "out, and of a table in memory none are: give 'epochs' or 'steps'."
            )
        if name in files:
            raise ValueError(
                f"`options` have {name!r}, which is of files and their rows: choose "
                "rows and columns before they are given."
            )


def weighted_rows(
    x: Float[np.ndarray, "rows features"],
    y: Shaped[np.ndarray, "rows ..."],
    weight: Float[np.ndarray, " rows"],
    method: str,
) -> Split:
    """Training rows that count as much as their weights say, padded to a few sizes.

    Padding, up to 96 rows to a multiple of 32 and by at most an eighth of more, is rows
    of weight 0: folds of one table then share their compiled programs, and its rows
    change nothing but the noise of minibatches.

    Args:
        x: standardised features.
        y: class numbers, or standardised targets.
        weight: of each row.
        method: of `table_methods()`; for `laplace` rows are repeated instead.

    Raises:
        ValueError: for parts of a row where rows are repeated.
    """
    if method == "laplace":  # whose curvature counts every row once
        times = np.minimum(weight, _MOST_REPEATS).astype(int)
        if np.any(times != weight):
            raise ValueError(
                "`method` 'laplace' takes whole numbers up to "
                f"{_MOST_REPEATS:,} for `sample_weight`: give these, or another method."
            )
        return Split(np.repeat(x, times, 0).astype(np.float32), np.repeat(y, times, 0))
    more = _padded(len(x)) - len(x)
    pad = lambda a: np.concatenate([a, np.zeros((more, *a.shape[1:]), a.dtype)])
    targets = WeightedTargets(pad(y), pad(weight.astype(np.float32)))
    return Split(pad(x.astype(np.float32)), targets)


def _padded(num_rows: int) -> int:
    """One of three sizes of few rows, and of eight to each next power of 2."""
    is_few = num_rows <= _FEW_ROWS
    unit = _FEW_UNIT if is_few else 2 ** (num_rows.bit_length() - 4)
    return num_rows + -num_rows % unit


def table_inputs(
    frame: "pd.DataFrame",
    names: list[str],
    *,
    is_asked: bool,
    weights: Float[np.ndarray, " rows"] | None = None,
) -> tuple[TableEncoding, Float[np.ndarray, "rows features"], list[str]]:
    """How a table in memory is encoded, and its rows so.

    Args:
        frame: the table.
        names: of the columns to learn from.
        is_asked: whether none is left out but for want of values.
        weights: of the rows: medians and common categories are theirs.

    Raises:
        DataError: for cells that cannot be used.
    """
    rows, how = np.arange(len(frame)), {"is_asked": is_asked, "weights": weights}
    remedy = "numbers under another name are learned from"
    encoding, notes = TableEncoding.learned(
        frame, names, rows, "X", remedy=remedy, **how
    )
    x, strange = encoding.apply(frame, "X")
    return encoding, x, [*notes, *strange]


def _predicted(
    fit: Fitted, inputs: Inputs, data: Data, num_draws: int, key: PRNGKeyArray
) -> TablePrediction:
    x = inputs.x
    num_rows = len(x)
    options: dict[str, Any] = {"pad_rows": True}
    if num_rows <= _MANY_ROWS:
        more = -num_rows % _BLOCK
        x = np.concatenate([x, np.repeat(x[-1:], more, axis=0)])
        options = {"batch_size": _BLOCK}
    found = predict(fit, x, key=key, num_draws=num_draws, **options)
    return TablePrediction(RunPrediction(found, data, inputs), num_rows)


def _without_rows(data: Data) -> Data:
    """The same, with one row of zeros."""
    row = jax.tree.map(lambda a: np.zeros_like(a[:1]), data.train)
    return dataclasses.replace(data, train=row, test=row)


def _unweighted(samples: PosteriorSamples) -> PosteriorSamples:
    params, scale = samples.positions
    return dataclasses.replace(
        samples,
        positions=(params, scale.base),
        fixed_likelihood=samples.fixed_likelihood.base,
    )


def _written(fit: Any) -> dict[str, Any]:
    if isinstance(fit, PosteriorSamples):
        positions = list(map(np.asarray, jax.tree.leaves(fit.positions)))
        kept = {"starts": fit.starts, "notes": tuple(map(str, fit.notes))}
        return {"positions": positions, **kept}
    found = (fit.model, fit.likelihood, fit.state)
    return {"numbers": [np.asarray(a) for a in jax.tree.leaves(found) if _is_kept(a)]}


def _read(
    saved: dict[str, Any], recipe: Recipe | SampleRecipe, prepared: Prepared
) -> Fitted:
    if isinstance(recipe, SampleRecipe):
        potential = Potential(**potential_arguments(recipe, prepared))
        structure = jax.tree.structure(potential.start)
        return PosteriorSamples(
            network=potential.network,
            fixed_likelihood=potential.likelihood,
            positions=jax.tree.unflatten(structure, saved["positions"]),
            info={},
            notes=saved["notes"],
            starts=saved["starts"],
            prior=potential.prior,
        )
    model = trained_like(prepared.recipe, prepared.model, prepared.likelihood)
    like = (model, prepared.likelihood, initial_state(prepared.model))
    leaves, structure = jax.tree.flatten(like)
    numbers = iter(saved["numbers"])
    own = [jnp.asarray(next(numbers)) if _is_kept(a) else a for a in leaves]
    return FittedModel(*jax.tree.unflatten(structure, own))


def _is_kept(leaf: Any) -> bool:
    is_array = isinstance(leaf, jax.Array | np.ndarray)
    return is_array and not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
