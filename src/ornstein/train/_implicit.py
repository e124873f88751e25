"""How implicit Bayesian neural networks are trained, as options of `fit`."""

from typing import Any

import optax

from ._kl_weight import KLWeight
from ._optimiser import Rule, decayed
from ._schedule import Constant, Linear


def nesterov(weight_decay: float = 0.0) -> Rule:
    """SGD with Nesterov momentum of 0.9, and weight decay as a gradient of its own.

    Args:
        weight_decay: times the parameters, added to the gradient of the loss per
            example (Adam's form, with its own scale, is `optax.adamw`). Standard
            deviations of a variational family have none.
    """

    def rule(rate: optax.ScalarOrSchedule) -> optax.GradientTransformation:
        mask = lambda params: decayed(params, lambda array: True)
        return optax.chain(
            optax.add_decayed_weights(weight_decay, mask if weight_decay else None),
            optax.sgd(rate, momentum=0.9, nesterov=True),
        )

    return rule


def implicit_options(
    *,
    learning_rate: float = 0.05,
    noise_learning_rate: float = 1.2,
    weight_decay: float = 5e-4,
    num_draws: int = 2,
) -> dict[str, Any]:
    """Options of `fit` for an `ImplicitBNN`: `fit(model, ..., **implicit_options())`.

    SGD with Nesterov momentum of 0.9 for both. The rate of the weights is constant for
    half of the run, then falls linearly to 0.01 of itself at nine tenths; that of the
    noise is large and constant; the KL weight rises from 0 over two thirds.

    The defaults are those of VGG-16 on CIFAR-10 with 300 epochs of batches of 128. A
    rule of thumb of the reference's code: a noise rate of 0.2 for each component, of
    which each meets a K-th of the batch.

    Args:
        learning_rate: of weights and biases, at its peak.
        noise_learning_rate: of the mixture's means and scales.
        weight_decay: of weights and biases.
        num_draws: noises of each row in a step.

    References:
        Trinh, Kaski & Heinonen (2020), "Scalable Bayesian neural networks by layer-wise
        input augmentation", section 3.3 and table 2.
    """
    return {
        "optimiser": {"weights": nesterov(weight_decay), "noise": nesterov()},
        "learning_rate": {"weights": learning_rate, "noise": noise_learning_rate},
        "schedule": {"weights": Linear(0.5, 0.9, 0.01), "noise": Constant()},
        "kl": KLWeight(warmup=2 / 3),
        "num_draws": num_draws,
    }
