r"""Step sizes of other libraries, in ours.

A step size here is $\varepsilon$ of Jospin et al. (2022): SGLD drifts by
$\varepsilon / 2$ times the gradient of U. blackjax's, and an optimiser's learning rate,
are what stands before the gradient. All of them are of U, the sum over the data: a
learning rate for the mean loss is to be divided by N first.
"""

import math


def sgld_step_size(learning_rate: float) -> float:
    r"""$\varepsilon$ of the `SGLD` that drifts as SGD, or as blackjax's SGLD, does.

    Args:
        learning_rate: of the gradient of U; blackjax's `step_size`.
    """
    return 2 * learning_rate


def sghmc_settings(learning_rate: float, momentum: float) -> tuple[float, float]:
    r"""Step size and friction of the `SGHMC` that drifts as SGD with momentum does.

    Args:
        learning_rate: $\eta = \varepsilon^2$, of the gradient of U.
        momentum: 1 - a, with $a = \varepsilon C$.

    Returns:
        $\varepsilon$ and C, for mass 1.

    Raises:
        ValueError: for a learning rate that is not positive, or momentum outside
            [0, 1).
    """
    if learning_rate <= 0 or not 0 <= momentum < 1:
        raise ValueError(
            "`learning_rate` must be positive and `momentum` in [0, 1), got "
            f"{learning_rate} and {momentum}: give those of SGD with momentum."
        )
    step_size = math.sqrt(learning_rate)
    return step_size, (1 - momentum) / step_size
