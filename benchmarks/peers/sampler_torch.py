"""The samplers' benchmark by posteriors, and its mean-field step by bayesian-torch."""

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from unittest import mock

import numpy as np
import torch
import torch.nn.functional as F
from bayesian_torch.layers import LinearReparameterization

from ornstein.data import Split

from . import sampler
from .sampler_blackjax import Layers

with warnings.catch_warnings():  # of its tensor classes, by newer tensordicts
    warnings.simplefilter("ignore", FutureWarning)
    import posteriors
    from posteriors.types import Transform

Batch = tuple[torch.Tensor, torch.Tensor]


def tensor(array: object) -> torch.Tensor:
    """A tensor of its own memory."""
    return torch.from_numpy(np.array(array))


def transposed(layers: Layers) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Matrices as torch has them, and biases."""
    return [(tensor(matrix.T).contiguous(), tensor(bias)) for matrix, bias in layers]


def to_torch(data: Split) -> Batch:
    """Inputs and classes."""
    return tensor(data.x), tensor(data.y).long()


def make_network(layers: Layers) -> torch.nn.Sequential:
    """The MLP that classifies."""
    modules: list[torch.nn.Module] = []
    for matrix, bias in transposed(layers):
        linear = torch.nn.Linear(*matrix.T.shape)
        linear.weight.data, linear.bias.data = matrix, bias
        modules += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*modules[:-1])


def params_of(network: torch.nn.Module) -> dict[str, torch.Tensor]:
    """By name, without torch's own record of gradients, which posteriors ignores."""
    return {name: p.detach().clone() for name, p in network.named_parameters()}


def log_posterior_of(network: torch.nn.Module) -> Callable:
    """(parameters, batch) to the log posterior and the logits."""
    function = posteriors.model_to_function(network)

    def log_posterior(params: dict, batch: Batch) -> tuple:
        x, y = batch
        logits = function(params, x)
        log_likelihood = -sampler.NUM_DATA * F.cross_entropy(logits, y)
        log_prior = posteriors.diag_normal_log_prob(params, normalize=False)
        return log_likelihood + log_prior, logits

    return log_posterior


def sgld(
    network: torch.nn.Module, step_size: float = sampler.LANGEVIN_STEP
) -> Transform:
    """Its step size is half of ours."""
    return posteriors.sgmcmc.sgld.build(log_posterior_of(network), step_size / 2)


def sghmc(
    network: torch.nn.Module,
    step_size: float = sampler.HAMILTONIAN_STEP,
    momenta: dict[str, torch.Tensor] | None = None,
) -> Transform:
    """One inner step."""
    return posteriors.sgmcmc.sghmc.build(
        log_posterior_of(network), step_size, sampler.FRICTION, momenta=momenta
    )


def chain(
    transform: Transform, network: torch.nn.Module, data: Batch
) -> Callable[[], None]:
    """A function that takes one step on a batch of its own."""
    state = transform.init(params_of(network))

    def run() -> None:
        nonlocal state
        state, _ = transform.update(state, _draw_batch(data), inplace=True)

    return run


class _Linear(LinearReparameterization):
    """With the KL of all weights; bayesian-torch's own is their mean."""

    def kl_div(self, mu_q, sigma_q, mu_p, sigma_p):
        return mu_q.numel() * super().kl_div(mu_q, sigma_q, mu_p, sigma_p)


class MeanFieldNet(torch.nn.Module):
    """The MLP with normal weights."""

    def __init__(self, layers: Layers):
        super().__init__()
        self.layers = torch.nn.ModuleList()
        rho = float(np.log(np.expm1(sampler.INIT_SCALE)))
        for matrix, bias in transposed(layers):
            layer = _Linear(*matrix.T.shape)
            layer.mu_weight.data, layer.mu_bias.data = matrix, bias
            layer.rho_weight.data.fill_(rho)
            layer.rho_bias.data.fill_(rho)
            self.layers.append(layer)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        *hidden, last = self.layers
        total = 0.0
        for layer in hidden:
            x, kl = layer(x)
            x, total = torch.relu(x), total + kl
        x, kl = last(x)
        return x, total + kl


def mean_field_loss(network: MeanFieldNet, batch: Batch) -> torch.Tensor:
    """The bound in nats per example."""
    x, y = batch
    logits, kl = network(x)
    return F.cross_entropy(logits, y) + kl / sampler.NUM_DATA


def mean_field(network: MeanFieldNet, data: Batch) -> Callable[[], None]:
    """A function that takes one Adam step on a batch of its own."""
    adam = torch.optim.Adam(network.parameters(), sampler.LEARNING_RATE)

    def run() -> None:
        loss = mean_field_loss(network, _draw_batch(data))
        adam.zero_grad()
        loss.backward()
        adam.step()

    return run


def _draw_batch(data: Batch) -> Batch:
    rows = torch.randint(0, sampler.NUM_DATA, (sampler.BATCH_SIZE,))
    return data[0][rows], data[1][rows]


@contextlib.contextmanager
def given_normals(noise: Sequence[torch.Tensor]) -> Iterator[None]:
    """Have both libraries draw these normals, in this order."""
    left = iter(noise)
    with (
        mock.patch("torch.randn_like", side_effect=left),
        mock.patch("torch.Tensor.normal_", lambda self: self.copy_(next(left))),
    ):
        yield
