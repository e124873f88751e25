"""How far confidence may be from accuracy and still be right."""

import numpy as np

from .._types import Float


def overconfidence_error(confidence: Float[np.ndarray, "draws rows"]) -> float:
    r"""The standard deviation of confidence less accuracy of a calibrated model.

    If the posterior is right, one draw $k$ is the truth for all $n$ rows: then mean
    confidence less accuracy has the mean 0 and the variance

    $$\mathrm{Var}_k \Big(\frac{1}{n} \sum_i p_{ki}\Big) + \mathrm{E}_k
    \frac{1}{n^2} \sum_i p_{ki} (1 - p_{ki}).$$

    Of rows that are right or wrong independently, as of a single draw, the second term
    is all; where draws differ, rows are right or wrong together.

    Args:
        confidence: $p_{ki}$, each draw's probability of the guessed class.
    """
    confidence = np.asarray(confidence, np.float64)
    num_rows = confidence.shape[1]
    together = np.var(confidence.mean(axis=1))
    within = np.sum(confidence * (1 - confidence), axis=1).mean() / num_rows**2
    return float(np.sqrt(together + within))
