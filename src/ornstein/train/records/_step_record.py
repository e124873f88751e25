"""What a step of training records."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..._types import Array, Float


class LossRecord(NamedTuple):
    """What the loss of a batch was made of.

    Attributes:
        loss: at the KL weight then used, nats per example.
        elbo: at weight 1, nats per data set; and so below.
        log_likelihood: the first part of it.
        kl: of what examples share.
        local_kl: of what they have each.
        terms: parts of the KL, by name.
        roughness: $R_K$ of the solves; `None` where it is not in the loss.
        energy: of points that have a prior; `None` where there are none.
    """

    loss: Float[Array, "*steps"]
    elbo: Float[Array, "*steps"]
    log_likelihood: Float[Array, "*steps"]
    kl: Float[Array, "*steps"]
    local_kl: Float[Array, "*steps"]
    terms: dict[str, Float[Array, "*steps"]]
    roughness: Float[Array, "*steps"] | None
    energy: Float[Array, "*steps"] | None


class StepRecord(NamedTuple):
    """What one step records; or several, which then lead.

    Attributes:
        of_loss: the parts of the loss.
        grad_norm: of the loss per example, before clipping.
        kl_weight: of the KL in the loss.
        learning_rate: by label.
        gradient_snr: by label; NaN but at an epoch's end.
        calibration: see `calibration_sums`; `None` without classes.
    """

    of_loss: LossRecord
    grad_norm: Float[Array, "*steps"]
    kl_weight: Float[Array, "*steps"]
    learning_rate: dict[str, Float[Array, "*steps"]]
    gradient_snr: dict[str, Float[Array, "*steps"]]
    calibration: Float[Array, "*steps 3 bins"] | None

    @property
    def num_steps(self) -> int:
        """How many there are, of several."""
        return self.grad_norm.shape[0]

    def at(self, step: int) -> "StepRecord":
        """One of several steps."""
        return jax.tree.map(lambda a: a[step], self)

    def is_finite(self, np_like: Any = jnp) -> Any:
        """Whether loss and gradient are numbers, in one step or in each of several.

        Args:
            np_like: `jax.numpy`, or `numpy` for records on the host.
        """
        finite = np_like.isfinite(self.of_loss.loss)
        return finite & np_like.isfinite(self.grad_norm)

    def by_name(self) -> dict[str, Any]:
        """The numbers under their names in histories and files, in their order."""
        of_loss = self.of_loss._asdict()
        terms = of_loss.pop("terms")
        beside = {name: of_loss.pop(name) for name in ("roughness", "energy")}
        named = of_loss | {name: terms[name] for name in sorted(terms)}
        named |= {"grad_norm": self.grad_norm, "kl_weight": self.kl_weight}
        named |= {name: part for name, part in beside.items() if part is not None}
        for name in ("learning_rate", "gradient_snr"):
            by_label = getattr(self, name)
            named |= {_suffixed(name, k): by_label[k] for k in sorted(by_label)}
        return named


def _suffixed(record: str, label: str) -> str:
    """`record` for the weights, `record_noise` for the noise."""
    return record if label == "weights" else f"{record}_{label}"
