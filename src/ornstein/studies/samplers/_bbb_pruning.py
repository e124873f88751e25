"""Bayes by Backprop on MNIST, and its weights removed by |mean| / scale.

Table 1 of Jospin et al. (2022), after Blundell et al. (2015): an MLP of
784-1200-1200-10 with a scale-mixture prior.
"""

from pathlib import Path
from typing import Any

import jax
import numpy as np

from ...data import Split, load
from ...evaluation import evaluate
from ...functions import MeanField, Pruned, prune
from ...likelihood import Categorical
from ...nn import MLP
from ...prediction import FittedModel, predict
from ...prior import ScaleMixturePrior
from ...recipe import ScaleName
from ...train import Run, RunFolder, fit, load_model, save_model, save_sparse
from .._experiment import Experiment, Study

_EPOCHS: dict[ScaleName, int] = {"quick": 40, "gpu": 100, "full": 600}
_FRACTIONS = (0.0, 0.5, 0.75, 0.9, 0.95, 0.98)
_PRIOR = {"mixture": 0.25, "wide_scale": 1.0, "narrow_scale": 0.0025}
_NUM_DRAWS = 32
_FINAL = Path("checkpoints") / "final.npz"


def _build(num_features: int, seed: int) -> MeanField:
    key = jax.random.key(seed)
    network = MLP(num_features, 10, [1200, 1200], activation=jax.nn.relu, key=key)
    return MeanField(network, ScaleMixturePrior(**_PRIOR), init_scale=0.0067)


def _flat(split: Split) -> Split:
    return Split(np.asarray(split.x).reshape(len(split), -1), split.y)


def _run(study: Study) -> list[dict[str, Any]]:
    data = load("mnist")
    train, test = _flat(data.train.in_memory()), _flat(data.test)
    settings = {"epochs": _EPOCHS[study.scale], "prior": _PRIOR, "seed": study.seed}
    run = study.run_folder("run", settings)

    def compute_model() -> dict[str, Any]:
        return _train(run, train, settings)

    trained = study.piece("train", settings, compute_model, needs=run / _FINAL)
    rows = []
    for fraction in _FRACTIONS:

        def compute(fraction=fraction) -> dict[str, Any]:
            model = load_model(run / _FINAL, _build(train.x.shape[1], study.seed))
            return _judge(prune(model, fraction), run, test)

        name = f"pruned_{round(100 * fraction)}"
        of = settings | {"num_draws": _NUM_DRAWS}
        rows.append({"removed": fraction} | study.piece(name, of, compute))
    return [row | trained for row in rows]


def _train(folder: Path, train: Split, settings: dict[str, Any]) -> dict[str, Any]:
    """Goes on from the folder's newest checkpoint, if it has one."""
    is_begun = (folder / "config.json").is_file()
    if is_begun and RunFolder.open(folder).config != settings:  # of another seed
        is_begun = False
    run = (
        RunFolder.open(folder)
        if is_begun
        else RunFolder.create(folder, settings, overwrite=True)
    )
    found = fit(
        _build(train.x.shape[1], settings["seed"]),
        train,
        Categorical(),
        key=jax.random.key(settings["seed"] + 1),
        num_epochs=settings["epochs"],
        batch_size=512,
        learning_rate=2e-3,
        clip_norm=None,
        snr_decay=None,
        run=Run(run, resume=is_begun),
    )
    save_model(folder / _FINAL, found.model)
    run.complete()
    last = {name: float(values[-1]) for name, values in found.history.items()}
    return {
        "num_epochs": settings["epochs"],
        "train_seconds": last["seconds"],
        "elbo": last["elbo"],
        "kl": last["kl"],
        "kl_weight": last["kl_weight"],
    }


def _judge(model: Pruned, folder: Path, test: Split) -> dict[str, Any]:
    fitted = FittedModel(model, Categorical())
    key = jax.random.key(0)
    prediction = predict(fitted, test.x, key=key, num_draws=_NUM_DRAWS)
    scores = evaluate(prediction, test.y)
    path = folder / "pruned.npz"
    save_sparse(path, model)
    return {
        "num_weights": model.num_weights,
        "test_error": 100 * (1 - float(scores["accuracy"])),
        "nll": float(scores["nll"]),
        "ece": float(scores["ece"]),
        "epistemic_share": float(scores["epistemic_share"]),
        "file_bytes": path.stat().st_size,
    }


BBB_PRUNING = Experiment(
    "MNIST error of Bayes by Backprop as weights are removed by |mean| / scale",
    "Jospin et al. (2022), table 1 (Blundell et al., 2015): 1.24 % with none or 75 % "
    "of the 2.4 million weights removed, 1.29 % at 95 %, 1.39 % at 98 %.",
    _run,
)
