"""Every method on the same folds of a table."""

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._sentence import OptionError
from .._types import Float, Shaped
from ..data import Standardisation, TableEncoding, check_scaling
from ..metrics import auroc, ece
from ..recipe import SampleRecipe, table_methods, table_recipe
from ..sampling import StuckChainError
from ..sklearn import BayesianClassifier, BayesianRegressor
from ..train import NonFiniteError
from ._baselines import BASELINES, Baseline, fit_baseline
from ._comparison import Comparison, MethodScores

if TYPE_CHECKING:
    import pandas as pd

OWN = (
    *("auto", "sdebnn", "mean-field", "implicit", "mc-dropout", "ensemble"),
    *("deterministic", "map", "laplace", "swag", "mclmc", "sghmc"),
)
"""The families, and chains of three kernels: `auto` of `hmc` where rows are few."""
_LEAST = 1e-7
"""Of a class's probability, for every method alike: a forest's may be 0."""
_MOST_CLASSES = 20
"""Different whole numbers; more are numbers, unless `task` says otherwise."""
_FAILURES = (NonFiniteError, StuckChainError, FloatingPointError)
_NAME = "The table"
_LEVEL = 0.9
_Z = 1.6448536269514722

Told = Callable[[str], None]


class _Fold(NamedTuple):
    """A split of the rows.

    Attributes:
        frame: all of them.
        encoding: kinds of columns as all rows have them, the rest of the training rows.
        y: class numbers or numbers of all.
        kept: numbers of the training rows.
        held: numbers of the others.
        seed: of what is fitted.
        is_classes: whether targets are classes.
    """

    frame: "pd.DataFrame"
    encoding: TableEncoding
    y: np.ndarray
    kept: np.ndarray
    held: np.ndarray
    seed: int
    is_classes: bool


class _Part(NamedTuple):
    """What a method said of the rows of a fold.

    Attributes:
        nll: of each, nats.
        said: class probabilities; or means and both ends of the central band.
        seconds: to fit and to predict.
    """

    nll: np.ndarray
    said: np.ndarray
    seconds: float


def compare(
    x: "pd.DataFrame | Float[np.ndarray, 'rows columns']",
    y: Shaped[np.ndarray, "..."],
    *,
    task: str | None = None,
    methods: Sequence[str] | None = None,
    num_folds: int = 5,
    effort: float = 1.0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int = 0,
    say: Told | None = None,
    keep: Callable[[Comparison], object] | None = None,
) -> Comparison:
    """Judge methods on a table by cross-validation, beside scikit-learn's.

    Args:
        x: features: an array, or a table of pandas as it is.
        y: classes, or numbers (rows,).
        task: `"classification"` or `"regression"`; by default numbers are a
            regression, but up to 20 different whole ones, text and truths are classes.
        methods: by name: a family, a kernel of chains, or one of `BASELINES`; by
            default `OWN` and all of these.
        num_folds: parts of the rows, each of which is tested once.
        effort: times each method's own number of steps; 1 is what `ornstein train`
            does by default, some seconds to two minutes a fold and method.
        options: by method, of `ornstein train` or `ornstein sample`.
        seed: of folds and methods.
        say: hears a line about each method as it is done.
        keep: is given what there is after each method.

    Raises:
        ValueError: for methods that there are not, or rows that cannot be used.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    y = np.asarray(y)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    task = _task(y) if task is None else task
    is_classes = _check(y, task, num_folds, effort)
    chosen = _chosen(methods)
    _check_options(options or {}, chosen, len(y), effort)
    classes, labels = np.unique(y, return_inverse=True) if is_classes else (None, y)
    splitter = StratifiedKFold if is_classes else KFold
    frame = _frame(x)
    if len(frame) != len(y):
        raise ValueError(
            f"`x` has {len(frame)} rows and `y` has {len(y)}: give one for each."
        )
    dealt = splitter(num_folds, shuffle=True, random_state=seed).split(labels, labels)
    folds = []
    for kept, held in dealt:
        encoding = TableEncoding.learned(frame, list(frame.columns), kept, _NAME)[0]
        folds.append(_Fold(frame, encoding, labels, kept, held, seed, is_classes))
    num_classes = 0 if classes is None else len(classes)
    found: list[MethodScores] = []
    failed: dict[str, str] = {}
    for method in chosen:
        if isinstance(method, Baseline):
            if not method.is_small(len(folds[0].kept), num_classes):
                if methods is not None:
                    failed[method.name] = (
                        f"{method.name} is left out: {len(folds[0].kept):,} training "
                        "rows are more than it is tried on, as its time grows with "
                        "their cube"
                    )
                    if say is not None:
                        say(failed[method.name])
                continue
            parts = [_of_baseline(method, fold) for fold in folds]
            done = _scored(method.name, parts, folds, is_own=False)
        else:
            own = dict((options or {}).get(method, {}))
            try:
                with warnings.catch_warnings():  # of columns, again for each fold
                    warnings.simplefilter("ignore", UserWarning)
                    parts = [_of_own(method, fold, effort, own) for fold in folds]
            except _FAILURES as error:
                failed[method] = str(error)
                if say is not None:
                    say(f"{method} failed: {error}")
                continue
            done = _scored(method, parts, folds, is_own=True)
        found.append(done)
        if say is not None:
            say(f"{done.name}: NLL {done.mean_nll:.4g}, {done.seconds:.3g} s a fold")
        if keep is not None:
            keep(Comparison(task, len(y), num_folds, tuple(found), dict(failed)))
    if not found:
        raise ValueError(f"No method came to its end: {' '.join(failed.values())}")
    return Comparison(task, len(y), num_folds, found, failed)


def _task(y: np.ndarray) -> str:
    """As of files: classes are text, truths, and few different whole numbers."""
    if y.dtype.kind not in "iuf":
        return "classification"
    is_whole = y.dtype.kind != "f" or bool(np.all(y == np.round(y)))
    is_few = is_whole and len(np.unique(y)) <= _MOST_CLASSES
    return "classification" if is_few else "regression"


def _check(y: np.ndarray, task: str, num_folds: int, effort: float) -> bool:
    """Whether targets are classes."""
    if task not in ("classification", "regression"):
        raise ValueError(
            f"`task` is {task!r}, and is 'classification' or 'regression'."
        )
    if y.ndim != 1:
        raise ValueError(
            f"`y` has shape {y.shape}, and one target for each row is compared: give "
            "(rows,)."
        )
    if num_folds < 2 or num_folds > len(y):
        raise OptionError(
            "{num_folds} is {}, and must be from 2 to the {} rows.", num_folds, len(y)
        )
    if not 0 < effort < float("inf"):
        raise OptionError("{effort} must be positive, got {}: 1 is usual.", effort)
    if task == "regression":
        if len(y) - math.ceil(len(y) / num_folds) < 2:
            raise OptionError(
                "{num_folds} {} of {} rows leave a single one to learn from, and a "
                "regression takes two: give more rows.",
                num_folds,
                len(y),
            )
        return False
    counts = np.unique(y, return_counts=True)[1]
    if len(counts) < 2:
        raise ValueError("`y` has one class alone: give rows of two or more.")
    if counts.min() < num_folds:
        raise OptionError(
            "A class has {} rows, fewer than the {} folds that are each to have one: "
            "leave it out, give fewer {num_folds}, or {task} regression if these are "
            "numbers.",
            counts.min(),
            num_folds,
        )
    return True


def _chosen(methods: Sequence[str] | None) -> list[str | Baseline]:
    every: dict[str, str | Baseline] = {name: name for name in table_methods()}
    every |= {baseline.name: baseline for baseline in BASELINES}
    default = [*OWN, *(baseline.name for baseline in BASELINES)]
    if isinstance(methods, str):
        methods = [methods]
    names = default if methods is None else list(methods)
    unknown = [name for name in names if name not in every]
    if unknown or not names:
        raise OptionError(
            "{methods} has {}, and may have {}.",
            ", ".join(map(str, unknown)) or "none",
            ", ".join(every),
        )
    return [every[name] for name in dict.fromkeys(names)]


def _check_options(
    options: Mapping[str, Mapping[str, Any]],
    chosen: Sequence[str | Baseline],
    num_rows: int,
    effort: float,
) -> None:
    """Refuse options before anything is fitted."""
    own = [method for method in chosen if isinstance(method, str)]
    for name in options:
        if name not in own:
            raise ValueError(
                f"`options` have {name!r}, which is none of this library's methods "
                f"that are compared: {', '.join(own) or 'none'}."
            )
    for method in own:
        scaled = _with_effort(method, num_rows, effort, dict(options.get(method, {})))
        table_recipe(method, num_rows, scaled, seed=0)


def _frame(x: Any) -> "pd.DataFrame":
    import pandas as pd

    if isinstance(x, pd.DataFrame):
        frame = x.rename(columns=str).reset_index(drop=True)
        twice = frame.columns[frame.columns.duplicated()]
        if len(twice):
            raise ValueError(
                f"`x` has two columns of one name, {twice[0]!r}: rename one."
            )
        return frame
    x = np.asarray(x)
    if x.ndim != 2 or 0 in x.shape:
        raise ValueError(
            f"`x` has shape {x.shape}: give rows of numbers (rows, columns), or a "
            "table of pandas."
        )
    return pd.DataFrame(x, columns=[f"x{i}" for i in range(x.shape[1])])


def _of_own(method: str, fold: _Fold, effort: float, options: dict) -> _Part:
    start = time.perf_counter()
    kind = BayesianClassifier if fold.is_classes else BayesianRegressor
    scaled = _with_effort(method, len(fold.kept), effort, options)
    model: Any = kind(method, options=scaled, random_state=fold.seed)
    kept = fold.kept
    model._fit(fold.frame.iloc[kept], fold.y[kept], None, encoding=fold.encoding)
    rows, y = fold.frame.iloc[fold.held], fold.y[fold.held]
    if fold.is_classes:
        probs = model.predict_proba(rows)
        return _Part(_nll(probs, y), probs, time.perf_counter() - start)
    nll = -model.log_prob(rows, y)
    low, high = model.predict_quantiles(rows, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2]).T
    said = np.stack([model.predict(rows), low, high], axis=1)
    return _Part(nll, said, time.perf_counter() - start)


def _with_effort(
    method: str, num_rows: int, effort: float, options: dict[str, Any]
) -> dict[str, Any]:
    """A method's own number of gradients, times the effort.

    Of families steps; of chains with trajectories their lengths, and of others the
    warm-up and what lies between samples: as many samples whatever the effort.
    """
    if effort == 1:
        return options
    recipe = table_recipe(method, num_rows, options, seed=0)
    if not isinstance(recipe, SampleRecipe):
        names, part = ["steps"], recipe.training
    else:
        part = recipe.sampling
        has_length = part.kernel in ("hmc", "partial-hmc")
        names = ["num_integration_steps"] if has_length else ["num_warmup", "thin"]
        names += ["start_steps"] * (part.start_from == "members")
    own = {name: getattr(part, name) for name in names}
    scaled = {n: max(1, round(effort * v)) for n, v in own.items() if v}
    return scaled | options


def _of_baseline(baseline: Baseline, fold: _Fold) -> _Part:
    start = time.perf_counter()
    kept, held = fold.frame.iloc[fold.kept], fold.frame.iloc[fold.held]
    encoding, raw = fold.encoding, fold.encoding.apply(kept, _NAME)[0]
    scaling = Standardisation.fit(raw)
    check_scaling(scaling, raw, "x", encoding.feature_names)
    y, truth = fold.y[fold.kept], fold.y[fold.held]
    predict = fit_baseline(
        baseline, scaling.apply(raw), y, seed=fold.seed, is_classes=fold.is_classes
    )
    found = predict(scaling.apply(encoding.apply(held, _NAME)[0]))
    seconds = time.perf_counter() - start
    if fold.is_classes:
        return _Part(_nll(found, truth), found, seconds)
    z = (truth - found.mean) / found.std
    nll = 0.5 * np.log(2 * np.pi * found.std**2) + 0.5 * z**2
    off = _Z * found.std
    said = np.stack([found.mean, found.mean - off, found.mean + off], axis=1)
    return _Part(nll, said, seconds)


def _nll(
    probs: Float[np.ndarray, "rows classes"], y: Shaped[np.ndarray, " rows"]
) -> Float[np.ndarray, " rows"]:
    return -np.log(np.clip(probs[np.arange(len(y)), y], _LEAST, 1))


def _scored(
    name: str,
    parts: Sequence[_Part],
    folds: Sequence[_Fold],
    *,
    is_own: bool,
) -> MethodScores:
    y = folds[0].y
    nll = np.full(len(y), np.nan)
    said = np.full((len(y), parts[0].said.shape[1]), np.nan)
    for part, fold in zip(parts, folds, strict=True):
        nll[fold.held], said[fold.held] = part.nll, part.said
    if folds[0].is_classes:
        scores = {
            "accuracy": float(np.mean(said.argmax(1) == y)),
            "ece": float(ece(said.astype(np.float32), y.astype(np.int32))),
            "auroc": _auroc(said, y),
        }
    else:
        mean, low, high = said.T
        scores = {
            "rmse": float(np.sqrt(np.mean(np.square(mean - y)))),
            "coverage": float(np.mean((low <= y) & (y <= high))),
        }
    seconds = float(np.median([part.seconds for part in parts]))
    return MethodScores(name, is_own, nll, scores, seconds)


def _auroc(
    probs: Float[np.ndarray, "rows classes"], y: Shaped[np.ndarray, " rows"]
) -> float:
    """Each class against the others, averaged; of two classes that of the second."""
    classes = range(probs.shape[1]) if probs.shape[1] > 2 else [1]
    each = [auroc(probs[y != c, c], probs[y == c, c]) for c in classes]
    return float(np.mean(each))
