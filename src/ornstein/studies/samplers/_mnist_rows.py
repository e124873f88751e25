"""Where does a posterior pay? A few rows of MNIST, as they are, and an SDE-BNN.

The model is one for all: two scales of images, whose convolutions move through depth by
two steps of Euler each, in coordinates in which its prior is N(0, 1). Two posteriors of
it: a mixture of fits, each a normal for each coordinate of the path with all else at
its mode (KL weight 1), and SGHMC over all of it (temperature 1). Twins of the mixture,
of as many fits: paths at their prior (q = p; also as one fit of all steps), and none
(the network without noise). And an ensemble of five modes, paths among their numbers.
All see as many rows in all. Nothing is augmented, but in a row of its own that shifts
training images by up to two pixels, after which no likelihood is one of the data. Tests
are on MNIST's first 5,000 test rows, and on 2,000 of them turned by 90°.

Sizes, sigma, step and number of fits were chosen for the variational paths, by the last
2,000 training rows and one to three seeds; no fit here sees these but those of all
60,000. The test rows had been seen with the design of before (sigma 0.2, one fit each):
`results/pieces/mnist-rows-sigma-0.2.json`.
"""

import math
from typing import Any

import jax
import numpy as np

from ..._sentence import OptionError
from ..._types import Float, PRNGKeyArray
from ...data import (
    AbstractAugmentation,
    Split,
    default_augmentation,
    load,
    rotate_images,
)
from ...metrics import accuracy, auroc, ece, entropy
from ...plot import method_curves
from ...recipe import ScaleName
from ...report import save_figure
from .._experiment import Experiment, Study
from . import _mnist_methods
from ._mnist_methods import AUGMENTED, BATCH_SIZE, METHODS, NARROWER, NUM_FITS

_ROWS: dict[ScaleName, tuple[int, ...]] = {
    "quick": (300,),
    "gpu": (300, 1_000, 3_000, 10_000, 60_000),
    "full": (300, 1_000, 3_000, 10_000, 60_000),
}
_MOST_SEEDS: dict[ScaleName, int] = {"quick": 1, "gpu": 5, "full": 5}
_SEEDED_ROWS = 1_000
STEPS: dict[ScaleName, int] = {"quick": 200, "gpu": 12_000, "full": 12_000}
NUM_TEST, _NUM_TURNED = 5_000, 2_000
_POSTERIORS = {"variational paths": "paths", "sampled": "sampled"}
_ANGLE = 90.0
_SHIFTED = "augmented"


def _run(study: Study) -> list[dict[str, Any]]:
    rows, sizes = [], _sizes(study)
    several = range(study.seed, study.seed + _MOST_SEEDS[study.scale])
    for num_rows in sizes:
        seeds = several if num_rows == _SEEDED_ROWS else several[:1]
        found = [_one(study, num_rows, seed) for seed in seeds]
        rows += _summary(found, **_setting(study, num_rows))
    if _is_asked(study):
        found = [_one(study, _SEEDED_ROWS, s, is_shifted=True) for s in several]
        rows += _summary(found, **_setting(study, _SEEDED_ROWS), is_augmented=True)
    if not sizes:
        return rows
    plain = [row for row in rows if "is_augmented" not in row]
    names = dict.fromkeys(row["method"] for row in plain)
    figure = method_curves(
        {name: [r["nll"] for r in plain if r["method"] == name] for name in names},
        xs=[float(num_rows) for num_rows in sizes],
        xlabel="training rows",
        ylabel="test NLL, nats",
        has_log_x=True,
        has_log_y=True,
    )
    study.say(f"Wrote {save_figure(study.folder / 'mnist_rows.png', figure)}")
    return rows


def _setting(study: Study, num_rows: int) -> dict[str, int]:
    num_steps = whole_passes(STEPS[study.scale], num_rows)
    return {"rows": num_rows, "num_steps": num_steps, "batch_size": BATCH_SIZE}


def _is_asked(study: Study) -> bool:
    """Whether the row of shifted images is to be made: at `quick` only if named."""
    if study.models:
        return _SHIFTED in study.models
    return study.scale != "quick"


def _sizes(study: Study) -> tuple[int, ...]:
    """The numbers of rows that were asked for; else all."""
    ours = {str(num_rows): num_rows for num_rows in _ROWS[study.scale]}
    for model in study.models:
        if model not in (*ours, _SHIFTED):
            raise OptionError(
                "{models} {} is no number of rows of `reproduce mnist-rows` at {scale} "
                "{}: give some of {}, or {}.",
                model,
                study.scale,
                ", ".join(ours),
                _SHIFTED,
            )
    return tuple(n for name, n in ours.items() if name in (study.models or ours))


def _one(
    study: Study, num_rows: int, seed: int, *, is_shifted: bool = False
) -> dict[str, Any]:
    num_steps = whole_passes(STEPS[study.scale], num_rows)
    settings = design(num_steps) | {"seed": seed}
    name = f"rows_{num_rows}_{seed}"
    if is_shifted:
        name, settings = f"{_SHIFTED}_{name}", settings | {_SHIFTED: True}
    make = lambda: _compare(num_rows, num_steps, seed, is_shifted=is_shifted)
    return study.piece(name, settings, make)


def whole_passes(num_steps: int, num_rows: int) -> int:
    """Steps in all, rounded up so that each of the fits sees all rows equally often.

    Args:
        num_steps: of minibatches, in all.
        num_rows: to be seen.
    """
    of_fit = num_steps // NUM_FITS
    num_epochs = math.ceil(of_fit * BATCH_SIZE / num_rows)
    return NUM_FITS * math.ceil(num_epochs * num_rows / BATCH_SIZE)


def design(num_steps: int) -> dict[str, Any]:
    """All that scores depend on but rows and seeds: what tells pieces apart.

    Args:
        num_steps: of minibatches, in all.
    """
    return {
        "steps": num_steps,
        **_mnist_methods.design(),
        "tests": {"rows": NUM_TEST, "turned": _NUM_TURNED, "angle": _ANGLE},
    }


def _compare(
    num_rows: int, num_steps: int, seed: int, *, is_shifted: bool
) -> dict[str, Any]:
    """Each method's scores; the posteriors' NLL minus its, in pairs of test rows."""
    data = load("mnist")
    train = data.train.rows(np.arange(num_rows))
    test = data.test.rows(np.arange(min(NUM_TEST, len(data.test))))
    found, losses = {}, {}
    shift = default_augmentation("mnist") if is_shifted else None
    for name in AUGMENTED if is_shifted else METHODS:
        key = jax.random.key(seed)
        made = scores(name, train, test, num_steps, augmentation=shift, key=key)
        found[name], losses[name] = made
    for name, of_method in found.items():
        for posterior, short in _POSTERIORS.items():
            if posterior not in losses:
                continue
            difference = losses[posterior] - losses[name]
            error = difference.std(ddof=1) / math.sqrt(len(difference))
            of_method[f"{short}_minus"] = float(difference.mean())
            of_method[f"{short}_minus_se"] = float(error)
    return found


def scores(
    method: str,
    train: Split,
    test: Split,
    num_steps: int,
    *,
    augmentation: AbstractAugmentation | None = None,
    key: PRNGKeyArray,
) -> tuple[dict[str, float], Float[np.ndarray, " rows"]]:
    """What a method scores on test rows, and the loss of each.

    Args:
        method: a name of the table's.
        train: what it sees.
        test: of which the first are turned, too.
        num_steps: of minibatches, in all.
        augmentation: of its training images, of the methods that may have one.
        key: of all that is random.
    """
    inputs = [np.asarray(test.x), rotate_images(test.x[:_NUM_TURNED], _ANGLE)]
    train_method = (METHODS | NARROWER)[method]
    options = {} if augmentation is None else {"augmentation": augmentation}
    probs, strange = train_method(train, inputs, num_steps, key=key, **options)
    labels = np.asarray(test.y)
    losses = -np.log(probs[np.arange(len(labels)), labels].clip(1e-30))
    found = {
        "nll": float(losses.mean()),
        "accuracy": float(accuracy(probs, labels)),
        "ece": float(ece(probs, labels)),
        "auroc_rotated": auroc(entropy(probs), entropy(strange)),
    }
    return found, losses


def _summary(found: list[dict[str, Any]], **setting: int) -> list[dict[str, Any]]:
    """A row for each method: means over seeds, their spread, and errors of rows."""
    rows = []
    for name in found[0]:
        row: dict[str, Any] = {**setting, "method": name}
        row["num_seeds"] = len(found)
        for score in found[0][name]:
            values = np.array([value[name][score] for value in found])
            row[score] = float(values.mean())
            if len(found) > 1 and not score.endswith("_se"):
                row[f"{score}_sd"] = float(values.std(ddof=1))
        row["nll_seeds"] = [round(value[name]["nll"], 4) for value in found]
        rows.append(row)
    return rows


MNIST_ROWS = Experiment(
    "Where does a posterior pay? An SDE-BNN on 300 to 60,000 rows of MNIST",
    "No paper's: the SDE-BNN of Xu et al. (2022) with a posterior by SGHMC.",
    _run,
    options=("models",),
    shelf="results/pieces/{name}-{scale}.json",
)
