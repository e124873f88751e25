"""Networks, data and methods of implicit BNNs' tables and figures, trained and kept.

Trinh, Kaski & Heinonen (2020), section 3 and tables 2 to 5. `quick` has networks that
two cores can train; `full` has the paper's own, with its hyperparameters.
"""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import optax

from ... import nn
from ...data import Data, Split, default_augmentation, load
from ...evaluation import fit_scores
from ...functions import (
    AbstractRandomFunction,
    Deterministic,
    ImplicitBNN,
    MCDropout,
    MeanField,
)
from ...likelihood import Categorical
from ...metrics import reliability
from ...network import Network, initial_state
from ...prediction import FittedModel
from ...prior import fan_in_prior
from ...recipe import ScaleName
from ...train import (
    Constant,
    KLWeight,
    Linear,
    Run,
    RunFolder,
    fit,
    implicit_options,
    load_model,
    nesterov,
    save_model,
)
from .._experiment import Study

BATCH_SIZE = 128


class Case(NamedTuple):
    """A network and its data, trained in the same way by every method.

    Attributes:
        name: of the case.
        make_network: from a number of classes and a key.
        data: as `load` takes it.
        methods: names of the table's rows, such as `ibnn-4` for four components.
        epochs: passes over the training rows.
        train_rows: the first so many; `None` for all.
        test_rows: the first so many of the test rows; `None` for all.
        is_augmented: by crops and mirrors, as is usual for the data.
        learning_rate: of the weights.
        noise_rate: of the nodes, for each component.
        weight_decay: of the weights.
        prior_scale: of the nodes.
        init_spread: of the components' means.
        num_draws: noises of each row in a step.
        dropout: of MC dropout.
    """

    name: str
    make_network: Callable[..., Network]
    data: str
    methods: tuple[str, ...]
    epochs: int
    train_rows: int | None = None
    test_rows: int | None = None
    is_augmented: bool = True
    learning_rate: float = 0.05
    noise_rate: float = 0.2
    weight_decay: float = 5e-4
    prior_scale: float = 0.3
    init_spread: float = 0.5
    num_draws: int = 2
    dropout: float = 0.1

    def settings(self, method: str, seed: int) -> dict[str, Any]:
        """What decides a training, as JSON: what the method reads."""
        unread = {"make_network", "methods"}
        if not is_implicit(method):
            unread |= {"noise_rate", "prior_scale", "init_spread", "num_draws"}
        if method != "mc-dropout":
            unread.add("dropout")
        if method == "bnn-vi":
            unread |= {"learning_rate", "weight_decay"}
        own = {k: v for k, v in self._asdict().items() if k not in unread}
        return own | {"method": method, "seed": seed}


_LENET = Case(
    "lenet",
    lambda num_classes, key: nn.LeNet(num_classes, key=key),
    "mnist",
    ("sgd", "mc-dropout", "bnn-vi", "ibnn-8"),
    epochs=40,
    is_augmented=False,
    learning_rate=0.02,
    noise_rate=0.00125,
)
# A fortieth of the paper's steps: noise as wide as its own would drown these networks.
_SMALL = {
    "train_rows": 5000,
    "test_rows": 2000,
    "epochs": 60,
    "num_draws": 1,
    "noise_rate": 0.05,
    "prior_scale": 0.2,
    "init_spread": 0.1,
}
_VGG_QUARTER = Case(
    "vgg16-quarter",
    functools.partial(nn.VGG16, width=0.25),
    "cifar10",
    ("sgd", "ibnn-4"),
    **_SMALL,
)
_WRN_SMALL = Case(
    "wide-resnet-16-2",
    functools.partial(nn.WideResNet, 16, 2),
    "cifar10",
    ("sgd", "ibnn-4"),
    learning_rate=0.1,
    **_SMALL,
)
_METHODS = ("sgd", "mc-dropout", "bnn-vi", "ibnn-4", "ibnn-8", "ibnn-16")


def _paper(data: str) -> tuple[Case, ...]:
    """The networks of tables 3 to 5 with the hyperparameters of table 2."""
    is_100 = data == "cifar100"
    vgg = Case(
        f"vgg16-{data}",
        nn.VGG16,
        data,
        _METHODS,
        epochs=300,
        learning_rate=0.05,
        noise_rate=0.1 if is_100 else 0.075,
        weight_decay=3e-4 if is_100 else 5e-4,
        init_spread=0.75,
    )
    wide = Case(
        f"wide-resnet-28-10-{data}",
        functools.partial(nn.WideResNet, 28, 10),
        data,
        _METHODS,
        epochs=300,
        learning_rate=0.1,
        noise_rate=0.3 if is_100 else 0.15,
        prior_scale=0.1,
        dropout=0.3,
    )
    return vgg, wide


CASES: dict[ScaleName, tuple[Case, ...]] = {
    "quick": (_LENET, _VGG_QUARTER, _WRN_SMALL),
    "gpu": (
        Case(
            "wide-resnet-16-4",
            functools.partial(nn.WideResNet, 16, 4),
            "cifar10",
            ("sgd", "mc-dropout", "ibnn-8"),
            epochs=60,
            learning_rate=0.1,
            prior_scale=0.1,
        ),
    ),
    "full": (_LENET, *_paper("cifar10"), *_paper("cifar100")),
}
"""What each scale trains. The noise rates of `full` give table 2's with 16
components."""


def load_case(case: Case) -> Data:
    """The data, cut to the case's rows."""
    data = load(case.data)
    return dataclasses.replace(
        data,
        train=_first(data.train.in_memory(), case.train_rows),
        test=_first(data.test, case.test_rows),
    )


def num_test_draws(method: str) -> int:
    """Five from each component; as many functions of the others as five have."""
    if method == "sgd":
        return 1
    return 5 * num_components(method) if is_implicit(method) else 20


def is_implicit(method: str) -> bool:
    """Whether a method's name is that of an implicit BNN."""
    return method.startswith("ibnn-")


def num_components(method: str) -> int:
    """Of `ibnn-8`: 8."""
    return int(method.removeprefix("ibnn-"))


def trained(
    study: Study, case: Case, method: str, data: Data
) -> tuple[FittedModel, dict[str, Any]]:
    """A method's fit of a case, from the study's folder if it is there.

    A training under way goes on from its newest checkpoint.

    Returns:
        The fit, and a record: seconds, numbers trained, the KL at the end.
    """
    name = f"{case.name}-{method}"
    settings = case.settings(method, study.seed)
    folder = study.run_folder(f"runs/{name}", settings)
    final = folder / "checkpoints" / "final.npz"
    start = build(case, method, data.num_outputs, seed=study.seed)
    like = (start, Categorical(), initial_state(start))

    def compute() -> dict[str, Any]:
        return _train(folder, final, start, case, method, data, settings)

    record = study.piece(f"train-{name}", settings, compute, needs=final)
    return FittedModel(*load_model(final, like)), record


def scored(study: Study, case: Case, method: str, data: Data) -> dict[str, Any]:
    """Scores of the test rows, calibration bins, and what the posterior does."""

    def compute() -> dict[str, Any]:
        fit, record = trained(study, case, method, data)
        test_key, bound_key = jax.random.split(jax.random.key(study.seed + 3))
        num_draws = num_test_draws(method)
        scores, prediction = fit_scores(
            fit, data, num_draws=num_draws, test_key=test_key, bound_key=bound_key
        )
        scores["error_percent"] = 100 * (1 - scores["accuracy"])
        if isinstance(fit.model, ImplicitBNN):
            scores["num_nodes"] = fit.model.num_nodes
        bins = reliability(prediction.probs, data.test.y)
        lists = {k: np.asarray(v).tolist() for k, v in bins._asdict().items()}
        nan_to_none = lambda v: None if isinstance(v, float) and v != v else v
        scores["reliability"] = {
            name: [nan_to_none(v) for v in values] for name, values in lists.items()
        }
        return record | scores

    settings = case.settings(method, study.seed)
    settings["num_draws"] = num_test_draws(method)
    return study.piece(f"score-{case.name}-{method}", settings, compute)


def build(
    case: Case, method: str, num_classes: int, *, seed: int
) -> AbstractRandomFunction:
    """A method's random function, the same network at the start for all methods."""
    network_key, noise_key = jax.random.split(jax.random.key(seed))
    network = case.make_network(num_classes, key=network_key)
    if method == "sgd":
        return Deterministic(network)
    if method == "mc-dropout":
        return MCDropout(network, rate=case.dropout)
    if method == "bnn-vi":
        prior = fan_in_prior(network, scale=4.0)
        return MeanField(network, prior, init_scale=0.01)
    return ImplicitBNN(
        network,
        num_components=num_components(method),
        prior_scale=case.prior_scale,
        init_spread=case.init_spread,
        key=noise_key,
    )


def _train(
    folder: Path,
    final: Path,
    start: AbstractRandomFunction,
    case: Case,
    method: str,
    data: Data,
    settings: dict[str, Any],
) -> dict[str, Any]:
    is_begun = (folder / "config.json").is_file()
    if is_begun and RunFolder.open(folder).config != settings:
        is_begun = False
    run = (
        RunFolder.open(folder)
        if is_begun
        else RunFolder.create(folder, settings, overwrite=True)
    )
    augmentation = None
    if case.is_augmented:
        augmentation = default_augmentation(data.name, data.x_scaling)
    found = fit(
        start,
        data.train,
        Categorical(),
        key=jax.random.key(settings["seed"] + 1),
        num_epochs=case.epochs,
        batch_size=BATCH_SIZE,
        augmentation=augmentation,
        snr_decay=None,
        run=Run(run, resume=is_begun),
        **_options(case, method),
    )
    save_model(final, (found.model, found.likelihood, found.state))
    run.complete()
    history = found.history
    return {
        "seconds": float(history["seconds"][-1]),
        "epochs": len(history["loss"]),
        "num_parameters": nn.num_parameters(start),
        "final_loss": float(history["loss"][-1]),
        "kl": float(history["kl"][-1]),
    }


def _options(case: Case, method: str) -> dict[str, Any]:
    """Options of `fit`: what the paper says, and Adam for mean field."""
    if is_implicit(method):
        return implicit_options(
            learning_rate=case.learning_rate,
            noise_learning_rate=case.noise_rate * num_components(method),
            weight_decay=case.weight_decay,
            num_draws=case.num_draws,
        )
    if method == "bnn-vi":
        return {
            "optimiser": optax.adam,
            "learning_rate": 1e-3,
            "schedule": Constant(),
            "kl": KLWeight(warmup=2 / 3),
        }
    return {
        "optimiser": nesterov(case.weight_decay),
        "learning_rate": case.learning_rate,
        "schedule": Linear(0.5, 0.9, 0.01),
    }


def _first(split: Split, num_rows: int | None) -> Split:
    if num_rows is None:
        return split
    return Split(np.asarray(split.x)[:num_rows], np.asarray(split.y)[:num_rows])
