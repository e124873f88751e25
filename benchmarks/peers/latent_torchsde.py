"""The latent SDE of motion capture by torchsde, as its own examples write it.

The state is (z, KL so far); prior, posterior and diffusion are evaluated together, once
a step.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F
import torchsde

from ornstein import Series
from ornstein.functions import LatentSDE
from ornstein.functions._softplus import softplus_inverse

from . import latent_ornstein as ours
from ._torch import GivenIncrements, from_jax


class LatentPath(torch.nn.Module):
    """Encoder, drifts, diffusion and decoder, initialised from our model."""

    noise_type = "diagonal"
    sde_type = "ito"

    def __init__(self, model: LatentSDE):
        super().__init__()
        parameter = lambda x: torch.nn.Parameter(from_jax(x))
        recognition: Any = model.recognition
        prior: Any = model.prior_drift
        posterior: Any = model.posterior_drift
        diffusion: Any = model.diffusion
        self.encoder = _mlp(recognition.net)
        self.prior, self.posterior = _mlp(prior.net), _mlp(posterior.net)
        self.decoder = _mlp(model.decoder)
        self.read, self.read_bias = map(
            parameter, (diffusion.read, diffusion.read_bias)
        )
        self.write = parameter(diffusion.write)
        self.write_bias = parameter(diffusion.write_bias)
        self.offset = float(softplus_inverse(ours.START_SCALE))
        self.context = torch.empty(0)

    def encode(self, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and scale of q(z₀); the context is kept for the drift."""
        out = self.encoder(values[:, : ours.NUM_READ].flatten(1))
        mean, rho, self.context = out.split([ours.LATENT, ours.LATENT, ours.CONTEXT], 1)
        return mean, F.softplus(rho + self.offset)

    def f_and_g(
        self, t: torch.Tensor, y: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        z = y[:, :-1]
        hidden = torch.tanh(self.read * z[..., None] + self.read_bias)
        logits = (self.write * hidden).sum(-1) + self.write_bias
        low, high = ours.BOUNDS
        noise = low + (high - low) * torch.sigmoid(logits)
        time = t.expand(len(z), 1)
        difference = self.posterior(torch.cat([time, z, self.context], 1))
        half_square = (difference / noise).pow(2).sum(1, keepdim=True) / 2
        drift = torch.cat([self.prior(z) + difference, half_square], 1)
        return drift, F.pad(noise, (0, 1))

    def f(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.f_and_g(t, y)[0]

    def g(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.f_and_g(t, y)[1]


def _mlp(net: Any) -> torch.nn.Sequential:
    layers: list[torch.nn.Module] = []
    for layer in net.layers:
        num_in, num_out = layer.weight.shape
        linear = torch.nn.Linear(num_in, num_out)
        linear.weight.data = from_jax(layer.weight.T).contiguous()
        linear.bias.data = from_jax(layer.bias)
        layers += [linear, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1])


def to_torch(x: Series) -> tuple[torch.Tensor, torch.Tensor]:
    """Times, which all rows share, and values."""
    return from_jax(jnp.asarray(x.ts[0])), from_jax(jnp.asarray(x.values))


class Given:
    """Our noise for `loss`, in torch's shapes."""

    def __init__(self, noise: ours.Noise):
        self.start = from_jax(noise.start)
        increments = np.pad(np.asarray(noise.increments), ((0, 0), (0, 0), (0, 1)))
        steps = torch.from_numpy(increments.swapaxes(0, 1).copy())
        self.path = GivenIncrements(steps, dt=ours.FRAME)


def loss(
    model: LatentPath,
    ts: torch.Tensor,
    values: torch.Tensor,
    *,
    use_adjoint: bool = False,
    given: Given | None = None,
) -> torch.Tensor:
    """-ELBO, nats a sequence; torchsde's own noise unless it is `given`."""
    mean, scale = model.encode(values)
    normals = torch.randn_like(mean) if given is None else given.start
    y0 = F.pad(mean + scale * normals, (0, 1))
    path = None if given is None else given.path
    how: dict[str, Any] = {"bm": path, "method": "euler", "dt": ours.FRAME}
    if use_adjoint:
        how |= {"adjoint_params": (model.context, *model.parameters())}
        how |= {"adjoint_method": "euler"}
        found: Any = torchsde.sdeint_adjoint(model, y0, ts, **how)
    else:
        found = torchsde.sdeint(model, y0, ts, **how)
    z, half_squares = found[..., :-1], found[-1, :, -1]
    posterior = torch.distributions.Normal(mean, scale)
    prior = torch.distributions.Normal(0.0, 1.0)
    kl_initial = torch.distributions.kl_divergence(posterior, prior).sum(1)
    output = model.decoder(z).swapaxes(0, 1)
    fit = torch.distributions.Normal(output, ours.SCALE).log_prob(values).sum((1, 2))
    return (kl_initial + half_squares - fit).mean()
