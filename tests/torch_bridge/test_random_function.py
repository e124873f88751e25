"""Random functions as PyTorch's users meet them."""

import copy
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
from train.linear_model import linear_model

import ornstein as orn
from ornstein.functions import map_draws
from ornstein.nn import MLP, BatchNorm, Linear

torch = pytest.importorskip("torch", reason="PyTorch (extra `torch`)")
import ornstein.torch  # noqa: E402


def mean_field() -> orn.MeanField:
    return orn.MeanField(MLP(3, 2, (6,), key=jr.key(1)), orn.GaussianPrior(1.0))


def implicit() -> orn.ImplicitBNN:
    network = MLP(3, 2, (6,), key=jr.key(2))
    return orn.ImplicitBNN(network, num_components=2, key=jr.key(3))


def rows(number: int = 8):
    return torch.randn(number, 3, generator=torch.Generator().manual_seed(0))


def test_a_seed_is_jaxs_key():
    """Catches a draw of another key, and an index that is not passed on."""
    model, x = implicit(), rows()
    module = orn.torch.RandomFunction(model).eval()
    for index in (0, 1):
        expected = model(jnp.asarray(x.numpy()), key=jr.key(5), index=index)
        draw = module(x, seed=5, index=index)
        np.testing.assert_allclose(
            draw.output.detach(), expected.output, rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(draw.kl.detach(), expected.kl, rtol=1e-5)


def test_manual_seed_decides_all_draws():
    """Catches randomness from elsewhere, and a seed that is used twice."""
    module = orn.torch.RandomFunction(mean_field())
    found = []
    for _ in range(2):
        torch.manual_seed(3)
        found.append([module(rows()).output.detach() for _ in range(2)])
    (a, b), (c, d) = found
    assert torch.equal(a, c)
    assert torch.equal(b, d)
    assert not torch.equal(a, b)
    torch.manual_seed(3)
    first = orn.torch.sdebnn(3, 2)
    torch.manual_seed(3)
    assert torch.equal(orn.torch.sdebnn(3, 2).inducing, first.inducing)
    assert not torch.equal(orn.torch.sdebnn(3, 2).inducing, first.inducing)


def test_evaluation_is_one_function_of_any_component():
    """Catches noise of each row's own in evaluation, and a component never drawn."""
    model = implicit()
    narrow = lambda m: m.mixture.rho
    model = eqx.tree_at(narrow, model, jnp.full_like(narrow(model), -30.0))
    module = orn.torch.RandomFunction(model)
    same = rows(1).repeat(6, 1)
    in_training = module(same, seed=0).output
    assert len(torch.unique(in_training, dim=0)) == 2  # a component for each half
    torch.manual_seed(0)
    seen = [module.eval()(same).output.detach() for _ in range(12)]
    assert all(torch.equal(one, one[:1].expand_as(one)) for one in seen)
    assert len(torch.unique(torch.stack(seen)[:, 0].round(decimals=4), dim=0)) == 2


def test_draws_are_predicts():
    """Catches strata that are not taken in turn; rows and their blocks do not count."""
    model, x = implicit(), rows()
    module = orn.torch.RandomFunction(model)
    expected = map_draws(
        lambda draw: draw.output,
        model,
        jnp.asarray(x.numpy()),
        key=jr.key(4),
        num_draws=4,
    )
    found = module.draws(x, 4, seed=4)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    blocks = [module.draws(block, 4, seed=4) for block in x.split(5)]
    torch.testing.assert_close(torch.cat(blocks, 1), found)


def test_to_jax_is_a_copy_of_now():
    """Catches a model that changes under JAX's feet when PyTorch goes on training."""
    module = orn.torch.RandomFunction(mean_field())
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(1)
    model = module.to_jax()
    before = [np.array(leaf) for leaf in jax.tree.leaves(model) if eqx.is_array(leaf)]
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(1)
    after = [leaf for leaf in jax.tree.leaves(model) if eqx.is_array(leaf)]
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)
    first = jax.tree.leaves(eqx.filter(mean_field(), eqx.is_array))
    assert any(np.allclose(a, f + 1) for a, f in zip(before, first, strict=True))


def test_a_torch_loop_reaches_what_jaxs_reaches():
    """Catches gradients that train, and not as well: on the same seeds, losses agree.

    Adam of PyTorch and of optax differ by rounding alone.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(32, 3)).astype("float32")
    y = (x[:, 0] * x[:, 1] > 0).astype("int64")
    num_steps, rate, num_data = 60, 0.02, 32

    module = orn.torch.RandomFunction(mean_field())
    adam = torch.optim.Adam(module.parameters(), rate)
    theirs = []
    for step in range(num_steps):
        draw = module(torch.tensor(x), seed=step)
        nll = torch.nn.functional.cross_entropy(draw.output, torch.tensor(y))
        loss = nll + draw.divergence(num_data)
        adam.zero_grad()
        loss.backward()
        adam.step()
        theirs.append(loss.item())

    model = mean_field()
    labels = model.labels()
    params, frozen = eqx.partition(
        model, jax.tree.map(lambda label: label != "frozen", labels)
    )
    transform = optax.adam(rate)

    @jax.jit
    def step_fn(params, opt_state, key):
        def loss(params):
            draw = eqx.combine(params, frozen)(jnp.asarray(x), key=key)
            nll = optax.softmax_cross_entropy_with_integer_labels(
                draw.output, jnp.asarray(y, jnp.int32)
            )
            return jnp.mean(nll) + draw.kl / num_data

        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = transform.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, value

    opt_state, ours = transform.init(params), []
    for step in range(num_steps):
        params, opt_state, value = step_fn(params, opt_state, jr.key(step))
        ours.append(float(value))
    np.testing.assert_allclose(theirs, ours, rtol=1e-3)
    assert theirs[-1] < 0.75 * theirs[0]


def test_batch_statistics_are_buffers():
    """Catches statistics that stand still, move in evaluation or are not used in it."""

    class Normed(eqx.Module):
        layer: Linear
        norm: BatchNorm

        def __call__(self, x, state):
            return self.norm(self.layer(x), state)

    model = orn.Deterministic(Normed(Linear(3, 4, key=jr.key(0)), BatchNorm(4)))
    module = orn.torch.RandomFunction(model)
    names = {name for name, _ in module.named_buffers()}
    assert names == {name for name in module.state_dict() if "init" in name}
    before = {name: b.clone() for name, b in module.named_buffers()}
    x = rows() + 5
    module(x, seed=0).output.sum().backward()
    state = model(
        jnp.asarray(x.numpy()), key=jr.key(0), state=eqx.nn.State(model)
    ).state
    (index,) = orn.network.batch_states(model)
    expected = jax.tree.leaves(state.get(index))
    for value, (name, buffer) in zip(expected, module.named_buffers(), strict=True):
        np.testing.assert_allclose(buffer, value, rtol=1e-5)
        assert not torch.equal(buffer, before[name])
    kept = {name: b.clone() for name, b in module.named_buffers()}
    found = module.eval()(x).output.detach()
    after = module.to_jax()
    (kept_index,) = orn.network.batch_states(after)
    mean, variance = map(np.asarray, jax.tree.leaves(kept_index.init))
    layer = after.network.layer
    h = x.numpy() @ np.asarray(layer.weight) + np.asarray(layer.bias)
    h = (h - mean) / np.sqrt(variance + 1e-5)
    np.testing.assert_allclose(found, h, rtol=1e-4, atol=1e-5)
    assert all(torch.equal(kept[name], b) for name, b in module.named_buffers())
    # As the docstring of `to_jax` says.
    fitted = orn.prediction.FittedModel(after, orn.Categorical(), eqx.nn.State(after))
    said = orn.predict(fitted, x.numpy(), key=jr.key(0), num_draws=1)
    np.testing.assert_allclose(said.outputs[0], found, rtol=1e-4, atol=1e-5)


def test_training_keeps_what_is_in_inference_mode():
    """A norm that is frozen, and dropout that is off: catches (seen) both switched on,
    which moves the statistics, refuses a single row and asks for dropout's key."""
    layers = [
        eqx.nn.BatchNorm(3, axis_name="batch", mode="batch"),
        eqx.nn.Dropout(0.5),
        eqx.nn.Linear(3, 2, key=jr.key(0)),
    ]
    network = eqx.nn.inference_mode(eqx.nn.Sequential(layers))
    module = orn.torch.RandomFunction(orn.Deterministic(network))
    before = {name: b.clone() for name, b in module.named_buffers()}
    x = rows(1)
    found = module(x).output.detach()
    assert before
    assert all(torch.equal(before[name], b) for name, b in module.named_buffers())
    np.testing.assert_array_equal(found, module.eval()(x).output.detach())


def test_own_latents_count_as_rows_do():
    """Catches a local KL without its gradient, and trees of tensors as inputs."""
    recognition = orn.functions.GRURecognition(
        2, 2, hidden_size=3, context_size=2, key=jr.key(1)
    )
    model = orn.LatentSDE.make(recognition, 2, drift_widths=(4,), key=jr.key(0))
    module = orn.torch.RandomFunction(model)
    values = np.random.default_rng(0).normal(size=(3, 5, 2)).astype("float32")
    series = orn.Series.of(np.linspace(0, 1, 5, dtype="float32"), values)
    draw = module(jax.tree.map(torch.tensor, series))
    assert draw.local_kl.shape == (3,)
    expected = draw.kl / 10 + draw.local_kl.mean()
    torch.testing.assert_close(draw.divergence(10), expected)
    draw.local_kl.mean().backward()
    assert any(float(p.grad.abs().max()) > 0 for p in module.parameters())


def test_energy_of_points_is_in_the_kl():
    """Catches a prior of points that no loss counts."""
    model = mean_field()
    module = orn.torch.RandomFunction(model)
    x = rows()
    draw = model(jnp.asarray(x.numpy()), key=jr.key(0))
    with_energy = eqx.tree_at(
        lambda d: d.energy, draw, jnp.asarray(3.0), is_leaf=lambda n: n is None
    )
    type_of = type(model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type_of, "__call__", lambda self, x, **how: with_energy)
        found = module(x, seed=0).kl
    np.testing.assert_allclose(found.detach(), draw.kl + 3.0, rtol=1e-6)


def test_copies_go_their_own_way():
    """Catches a copy that computes with the original's weights."""
    module = orn.torch.RandomFunction(mean_field())
    x = rows()
    before = module(x, seed=0).output.detach()
    twin = copy.deepcopy(module)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    assert torch.equal(twin(x, seed=0).output, before)
    assert not torch.equal(module(x, seed=0).output, before)
    with pytest.raises(TypeError, match=r"save module\.state_dict\(\)"):
        pickle.dumps(module)
    twin.load_state_dict(module.state_dict())
    assert torch.equal(twin(x, seed=0).output, module(x, seed=0).output)


def test_weights_that_are_not_in_rows():
    """Catches a view of weights that was a copy, and so stays as it was."""
    module = orn.torch.RandomFunction(mean_field())
    x = rows()
    for parameter in module.parameters():
        if parameter.ndim == 2:
            parameter.data = parameter.data.T.contiguous().T
    module(x, seed=0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(2)
    fresh = orn.torch.RandomFunction(mean_field())
    with torch.no_grad():
        for parameter in fresh.parameters():
            parameter.mul_(2)
    torch.testing.assert_close(module(x, seed=0).output, fresh(x, seed=0).output)


def test_images_come_channels_first():
    """Catches axes that are mixed up."""
    module = orn.torch.sdebnn_for_images(
        (1, 6, 4), 3, width=2, drift_widths=(2,), seed=0
    )
    x = torch.randn(2, 1, 6, 4)
    found = module.draws(x, 1, seed=1)[0]
    twin = orn.torch.RandomFunction(module.to_jax(), example_shape=(6, 4, 1))
    expected = twin.draws(x.permute(0, 2, 3, 1), 1, seed=1)[0]
    torch.testing.assert_close(found, expected)


def test_fields_may_have_names_of_methods():
    """Catches a field that takes the place of a module's method."""

    class Scaled(eqx.Module):
        to: jax.Array
        draws: list[jax.Array]

        def __call__(self, x):
            return x * self.to[None] + self.draws[0][None]

    network = Scaled(jnp.ones(3), [jnp.zeros(3)])
    module = orn.torch.RandomFunction(orn.Deterministic(network))
    assert set(module.state_dict()) == {"network.to_", "network.draws.0"}
    x = rows().double()
    assert torch.equal(module.to(torch.float64)(x).output, x)


def test_labels_are_checked():
    """Catches (seen) a leaf that is trained under a name that nobody knows."""
    model = linear_model(scale_label="fixed")
    with pytest.raises(ValueError, match="calls .log_scale 'fixed', which is no label"):
        orn.torch.RandomFunction(model)
