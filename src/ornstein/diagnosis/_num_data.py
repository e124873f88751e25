r"""A likelihood that counts the examples wrongly.

Notation: $N$ examples, as in `elbo_loss`, whose loss is $(\beta D - \ell) / N$ for a
log likelihood $\ell$ and a divergence $D$ of the data set, the energy of points that
have a prior in it. All are recorded, so that the $N$ that was used can be read off.
"""

import numpy as np

from ._base import NOT_CHECKED, CheckResult
from ._evidence import Evidence

FACTOR = 2.0
"""Of numbers of examples. Batches left over at an epoch's end, rows held out, and KL
weights that change within an epoch make less; a batch's size in place of the data's, or
data that were repeated, make more."""


def wrong_num_data(evidence: Evidence) -> CheckResult:
    """Compare the size in the recorded loss with the one that is given.

    Only where both are known. What it cannot see: a loop of one's own that records
    nothing, or whose loss isn't that of `elbo_loss`.
    """
    used = num_data_used(evidence.history)
    if used is None or evidence.num_data is None:
        return NOT_CHECKED
    numbers = {"num_data_used": used}
    ratio = used / evidence.num_data
    if 1 / FACTOR <= ratio <= FACTOR:
        return CheckResult(numbers)
    what = "wide" if ratio < 1 else "narrow"
    return CheckResult(
        numbers,
        f"The loss counted {used:.4g} examples where there are {evidence.num_data}: "
        f"the posterior is that of {ratio:.2g} times the data, and too {what}. Pass "
        "the size of the whole data set as `num_data` to `elbo_loss` (not of a batch), "
        "and count repeated or augmented rows once.",
    )


def num_data_used(history: dict[str, np.ndarray]) -> float | None:
    r"""The $N$ behind recorded losses, by least squares over epochs, or `None`.

    With an importance-weighted objective the loss is a little lower, and so $N$ a
    little large.
    """
    needed = ("loss", "log_likelihood", "kl")
    # With a penalty on the dynamics the loss is not the bound alone.
    if any(name not in history for name in needed) or "roughness" in history:
        return None
    loss, fits, kl = (np.asarray(history[name], np.float64) for name in needed)
    weight = np.asarray(history.get("kl_weight", 1.0))
    beside = (history.get(name, 0.0) for name in ("local_kl", "energy"))
    bound = weight * (kl + sum(map(np.asarray, beside))) - fits
    used = float(np.sum(bound * loss) / np.sum(loss**2)) if np.any(loss) else 0.0
    return used if np.isfinite(used) and used > 0 else None


def num_data_of(evidence: Evidence) -> float:
    """Examples behind the fit: as given, as recorded, or else the rows looked at."""
    if evidence.num_data is not None:
        return float(evidence.num_data)
    used = num_data_used(evidence.history)
    return float(evidence.draws.prediction.num_rows) if used is None else used
