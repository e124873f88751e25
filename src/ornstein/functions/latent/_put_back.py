"""Parts of a latent path's posterior put back to the prior."""

from collections.abc import Collection
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from ..._types import Array, Bool, Float, RealScalar
from ._recognition import AbstractRecognition, Recognised


class PriorStart(AbstractRecognition):
    """q(z₀) = p(z₀), whatever that learns, and the context of another recognition.

    Args:
        recognition: whose context it is.
    """

    recognition: AbstractRecognition
    latent_size: int = eqx.field(static=True)
    context_size: int = eqx.field(static=True)

    def __init__(self, recognition: AbstractRecognition):
        self.recognition = recognition
        self.latent_size = recognition.latent_size
        self.context_size = recognition.context_size

    def __call__(
        self,
        ts: Float[Array, " times"],
        values: Float[Array, "times features"],
        mask: Bool[Array, "times features"],
    ) -> Recognised:
        """See `AbstractRecognition`."""
        return Recognised(None, None, self.recognition(ts, values, mask).context)


class NoPosteriorDrift(eqx.Module):
    """Zero, to be added to the prior's drift: the posterior's paths are the prior's."""

    def __call__(
        self,
        t: RealScalar,
        z: Float[Array, " latent"],
        context: Float[Array, " context"],
    ) -> Float[Array, " latent"]:
        """Zeros like z."""
        del t, context
        return jnp.zeros_like(z)


def at_prior(
    parts: Collection[str], recognition: AbstractRecognition
) -> dict[str, Any]:
    """What changes in a latent SDE whose q is p.

    Args:
        parts: of q, `"start"` and `"path"`.
        recognition: the model's.

    Returns:
        New values of its fields, by their names.
    """
    changes: dict[str, Any] = {}
    if "start" in parts:
        changes["recognition"] = PriorStart(recognition)
    if "path" in parts:
        changes |= {"posterior_drift": NoPosteriorDrift(), "is_relative": True}
    return changes
