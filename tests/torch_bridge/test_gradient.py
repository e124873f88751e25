"""Gradients through JAX, as PyTorch has them."""

import gc
import weakref

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import ornstein as orn
from ornstein.functions import AbstractRandomFunction
from ornstein.nn import MLP

torch = pytest.importorskip("torch", reason="PyTorch (extra `torch`)")
import ornstein.torch  # noqa: E402

NUM_DATA = 50


def sdebnn() -> AbstractRandomFunction:
    return orn.SDEBNN.for_vectors(
        3, 2, width_sizes=(4,), drift_widths=(5,), num_inducing=2, key=jr.key(0)
    )


def mean_field() -> AbstractRandomFunction:
    network = MLP(3, 2, (6,), key=jr.key(1))
    return orn.MeanField(network, orn.GaussianPrior(1.0))


def implicit() -> AbstractRandomFunction:
    network = MLP(3, 2, (6,), key=jr.key(2))
    return orn.ImplicitBNN(network, num_components=2, key=jr.key(3))


MODELS = {"sdebnn": sdebnn, "mean_field": mean_field, "implicit": implicit}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> AbstractRandomFunction:
    return MODELS[request.param]()


def batch() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    return rng.normal(size=(8, 3)).astype("float32"), rng.integers(0, 2, 8)


def loss_of(module: "orn.torch.RandomFunction", x, y, *, seed: int = 7):
    draw = module(x, seed=seed)
    nll = torch.nn.functional.cross_entropy(draw.output, y)
    return nll + draw.divergence(NUM_DATA)


def test_gradients_are_jaxs(model: AbstractRandomFunction):
    """Catches gradients that reach the wrong parameter, and a KL without any."""
    x, y = batch()
    params, frozen = eqx.partition(model, eqx.is_inexact_array)

    def loss(params, x):
        loss, _ = orn.elbo_loss(
            eqx.combine(params, frozen),
            orn.Categorical(),
            (x, jnp.asarray(y, jnp.int32)),
            num_data=NUM_DATA,
            key=jr.key(0),
        )
        return loss

    # The key that `elbo_loss` gives the one draw of a model that trains alone.
    (words,) = np.asarray(jr.key_data(jr.split(jr.key(0), 1)))
    module = orn.torch.RandomFunction(model)
    inputs = torch.tensor(x, requires_grad=True)
    given = orn.torch._random_function
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(given, "words_of", lambda seed: words)
        found = loss_of(module, inputs, torch.tensor(y))
    found.backward()
    expected, (of_params, of_x) = jax.jit(jax.value_and_grad(loss, (0, 1)))(
        params, jnp.asarray(x)
    )
    np.testing.assert_allclose(found.item(), expected, rtol=1e-6)
    np.testing.assert_allclose(inputs.grad, of_x, rtol=1e-4, atol=1e-6)
    wanted = {
        jax.tree_util.keystr(path, simple=True, separator="."): leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(of_params)
    }
    parameters = dict(module.named_parameters())
    labels = [label for label in jax.tree.leaves(model.labels()) if label != "frozen"]
    assert len(parameters) == len(labels)
    for name, parameter in parameters.items():
        np.testing.assert_allclose(
            parameter.grad, wanted[name], rtol=1e-4, atol=1e-6, err_msg=name
        )


def test_gradients_equal_finite_differences(model: AbstractRandomFunction):
    """In double precision: catches a residual read after it changed, a wrong sign."""
    x, y = batch()
    module = orn.torch.RandomFunction(model).double()
    x, y = torch.tensor(x, dtype=torch.float64, requires_grad=True), torch.tensor(y)
    loss = loss_of(module, x, y)
    assert loss.dtype == torch.float64
    tensors = [x, *module.parameters()]
    gradients = torch.autograd.grad(loss, tensors)
    rng = torch.Generator().manual_seed(0)
    step = 1e-5
    directions = [
        torch.randn(t.shape, generator=rng, dtype=torch.float64) for t in tensors
    ]
    sums = [float((g * d).sum()) for g, d in zip(gradients, directions, strict=True)]
    values = []
    for sign in (1, -1):
        with torch.no_grad():
            for tensor, direction in zip(tensors, directions, strict=True):
                tensor.add_(direction, alpha=sign * step)
            values.append(float(loss_of(module, x, y)))
            for tensor, direction in zip(tensors, directions, strict=True):
                tensor.sub_(direction, alpha=sign * step)
    assert abs(sum(sums)) > 1e-2
    np.testing.assert_allclose(
        (values[0] - values[1]) / (2 * step), sum(sums), rtol=1e-6
    )


def test_a_part_is_held_still():
    """Catches gradients that are dealt to the wrong tensors where some have none."""
    x, y = (torch.tensor(a) for a in batch())
    module = orn.torch.RandomFunction(implicit())
    loss_of(module, x, y).backward()
    whole = {name: p.grad.clone() for name, p in module.named_parameters()}
    module.zero_grad()
    for parameter in module.parameters_labelled("weights"):
        parameter.requires_grad_(False)
    loss_of(module, x, y).backward()
    for name, parameter in module.named_parameters():
        if name.startswith("mixture"):
            torch.testing.assert_close(parameter.grad, whole[name])
        else:
            assert parameter.grad is None


def test_backward_twice_is_refused_unless_retained():
    """Catches a way back that is never freed, and one that is freed too early."""
    x, y = (torch.tensor(a) for a in batch())
    module = orn.torch.RandomFunction(mean_field())
    loss = loss_of(module, x, y)
    loss.backward(retain_graph=True)
    once = [p.grad.clone() for p in module.parameters()]
    loss.backward()
    for parameter, gradient in zip(module.parameters(), once, strict=True):
        torch.testing.assert_close(parameter.grad, 2 * gradient)
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_residuals_are_freed_by_the_backward_pass():
    """Catches a loss that holds a step's memory until the next one has made its own."""
    x, y = (torch.tensor(a) for a in batch())
    module = orn.torch.RandomFunction(mean_field())
    loss = loss_of(module, x, y)
    made = [o for o in gc.get_objects() if type(o).__name__ == "VJP"]
    held = [weakref.ref(o) for o in made]
    del made
    assert len(held) == 1
    assert held[0]() is not None
    loss.backward()
    assert held[0]() is None


def test_gradients_are_of_the_weights_that_were_used():
    """Catches a way back that looks at weights, and inputs, which have changed since.

    Of a plain network, in whose gradient its weights and inputs stand as they are.
    """
    x, y = (torch.tensor(a) for a in batch())
    module = orn.torch.RandomFunction(orn.Deterministic(MLP(3, 2, (4,), key=jr.key(0))))
    loss_of(module, x, y).backward()
    expected = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    loss = loss_of(module, x, y)
    with torch.no_grad():
        for tensor in (x, *module.parameters()):
            tensor.add_(1.0)
    loss.backward()
    for parameter, gradient in zip(module.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=0, atol=0)


def test_an_output_may_be_changed_in_place():
    """Catches an output that shares memory with what the gradient needs."""
    x, _ = (torch.tensor(a) for a in batch())
    # Its output is what the gradient of tanh needs.
    model = orn.Deterministic(MLP(3, 2, (4,), key=jr.key(0)))
    module = orn.torch.RandomFunction(model)
    module(x).output.square().sum().backward()
    expected = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    output = module(x).output
    output.mul_(output.detach().clone())
    output.sum().backward()
    for parameter, gradient in zip(module.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient / 2)


def test_gradients_do_not_share_memory():
    """Catches a clipped gradient that is scaled twice: both are the same cotangent."""

    class Sum(eqx.Module):
        a: jax.Array
        b: jax.Array

        def __call__(self, x):
            return x + self.a + self.b

    network = Sum(jnp.zeros((4, 2)), jnp.zeros((4, 2)))
    module = orn.torch.RandomFunction(orn.Deterministic(network))
    output = module(torch.zeros(4, 2)).output
    cotangent = torch.ones(4, 2)
    output.backward(cotangent)
    first, second = (p.grad for p in module.parameters())
    assert len({t.data_ptr() for t in (first, second, cotangent)}) == 3
    first.mul_(3)
    assert float(second.max()) == 1


def test_no_grad_runs_no_backward_program(monkeypatch: pytest.MonkeyPatch):
    """Catches an evaluation that pays for residuals."""
    x, _ = (torch.tensor(a) for a in batch())
    module = orn.torch.RandomFunction(mean_field())
    refused = lambda *args, **how: pytest.fail("linearised under no_grad")
    monkeypatch.setattr(module._program, "linearised", refused)
    with torch.no_grad():
        assert not module(x).output.requires_grad
    assert not module.requires_grad_(False)(x).kl.requires_grad


def test_compiled_once_for_a_shape():
    """Catches a program that is traced again at every step."""
    x, y = (torch.tensor(a) for a in batch())
    module = orn.torch.RandomFunction(mean_field())
    optimiser = torch.optim.SGD(module.parameters(), 0.01)
    for seed in range(3):
        optimiser.zero_grad()
        loss_of(module, x, y, seed=seed).backward()
        optimiser.step()
    program = module._program
    assert program._linearised._cache_size() == program._backward._cache_size() == 1


def test_no_gradient_of_a_gradient():
    """Catches a second derivative that is silently zero."""
    x, y = (torch.tensor(a) for a in batch())
    module = orn.torch.RandomFunction(mean_field())
    loss = loss_of(module, x, y)
    (gradient, *_) = torch.autograd.grad(
        loss, list(module.parameters()), create_graph=True
    )
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_gradient_reaches_the_layers_before():
    """Catches a module that is a dead end inside a network of PyTorch's."""
    x, y = (torch.tensor(a) for a in batch())
    first = torch.nn.Linear(3, 3)
    module = orn.torch.RandomFunction(sdebnn())
    loss_of(module, first(x), y).backward()
    assert float(first.weight.grad.abs().max()) > 0


def test_torch_compile_leaves_it_alone():
    """Catches a compiler that looks into JAX (seen: a TypeError of its trees)."""
    x, _ = (torch.tensor(a) for a in batch())
    module = orn.torch.RandomFunction(mean_field())
    network = torch.nn.Sequential(torch.nn.Linear(3, 3), module)
    compiled = torch.compile(network, backend="eager")
    torch.manual_seed(0)
    expected = network(x).output
    torch.manual_seed(0)
    torch.testing.assert_close(compiled(x).output, expected)
