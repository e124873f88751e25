"""`whiten`: an SDE-BNN over numbers that are N(0, 1) a priori, and nothing lost."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from functions.small_model import X as ROWS, blocks_of, small_model

from ornstein.functions import (
    SDEBNN,
    Deterministic,
    GridIncrements,
    Integrator,
    LevyCiesielski,
    WeightPrior,
    WhitenedBlock,
    WhitenedSDEBNN,
    expand_parameters,
    prior_of,
    whiten,
    with_roughness,
    with_solver,
    without_noise,
)
from ornstein.nn import MLP
from ornstein.sde import (
    SRA1,
    Adaptive,
    Backprop,
    Checkpointed,
    EulerMaruyama,
    Fixed,
    Grid,
    Heun,
    Midpoint,
    Reversible,
    ReversibleHeun,
)

X = jnp.asarray(ROWS)
GRID = np.linspace(0.0, 1.0, 9)
trajectory = eqx.filter_jit(lambda model, x, **key: model.trajectory(x, GRID, **key))
output_of = eqx.filter_jit(lambda model, x, **key: model(x, **key))
_WHOLE = (0.0, 1.0)


def ou_covariance(rate: float, start: float, sigma: float, ts) -> np.ndarray:
    """Of an OU process from N(0, start²), at every two of `ts`, in closed form."""
    s, t = np.meshgrid(ts, ts, indexing="ij")
    decay = np.exp(-rate * (s + t))
    if rate == 0:
        return start**2 + sigma**2 * np.minimum(s, t)
    noise = (np.exp(-rate * np.abs(s - t)) - decay) * sigma**2 / (2 * rate)
    return start**2 * decay + noise


@pytest.mark.parametrize("rate", [0.0, 1.5])
@pytest.mark.parametrize(
    "coordinates", [GridIncrements(), LevyCiesielski(8)], ids=["increments", "modes"]
)
def test_the_prior_of_a_path_has_the_covariance_of_the_process(rate, coordinates):
    """Exactly, at every two depths. Catches (seen) Euler's transition 1 - θΔ in place
    of exp(-θΔ), and triangles of height 2^(-n/2) in place of 2^(-n/2 - 1)."""
    bound = coordinates.on_grid(GRID, _WHOLE)
    matrix = bound.matrix(GRID, rate, _WHOLE)
    found = 0.7**2 * matrix @ matrix.T
    decay = 0.4 * np.exp(-rate * GRID)
    exact = ou_covariance(rate, 0.4, 0.7, GRID)
    np.testing.assert_allclose(found + np.outer(decay, decay), exact, atol=1e-12)


def test_modes_are_the_same_path_on_every_grid():
    """Where a coarse grid's times are, a fine one has the same Brownian path. Catches
    (seen) modes that are numbered by the grid's steps."""
    coarse = LevyCiesielski(4).matrix(GRID, 0.0, _WHOLE)
    fine = LevyCiesielski(4).matrix(np.linspace(0, 1, 65), 0.0, _WHOLE)
    np.testing.assert_allclose(fine[::8], coarse, atol=1e-12)


def normals_behind(model: SDEBNN, network: WhitenedSDEBNN, x, *, key):
    """The network at the very normals of one of the model's own draws."""
    blocks = []
    for states, block in zip(
        trajectory(model, x, key=key), _whitened_blocks(network), strict=True
    ):
        start = jax.tree.map(lambda w, s: w[0] / s, states.weights, block.start_scale)
        path = jax.tree.map(
            lambda w, s: jnp.diff(w, axis=0) / (s * math.sqrt(1 / 8)),
            states.weights,
            block.sigma,
        )
        blocks += [start, path]
    where = lambda n: [a for b in _whitened_blocks(n) for a in (b.start, b.path)]
    return eqx.tree_at(where, network, blocks)


def _whitened_blocks(network: WhitenedSDEBNN) -> list[WhitenedBlock]:
    return [a for a in network.layers if isinstance(a, WhitenedBlock)]


@pytest.mark.parametrize(
    "solver", [EulerMaruyama(), Heun(), Midpoint(), ReversibleHeun()]
)
def test_a_draw_of_the_model_is_the_network_at_the_same_normals(solver):
    """Weights, hidden units and output, whatever the solver, where the prior is
    Brownian motion: then every solver's transition is exact. Catches (seen) a path that
    is one step late, and weights that stay at a step's left end."""
    prior = WeightPrior(rate=0.0, sigma=0.7)
    how = Integrator(solver, Fixed(0.125))
    model = prior_of(small_model(prior=prior, num_inducing=0, integrator=how))
    network = normals_behind(model, whiten(model), X, key=jr.key(3))
    (own,) = trajectory(model, X, key=jr.key(3))
    (found,) = trajectory(network, X)
    assert float(jnp.ptp(own.weights.layers[0].layer.weight[:, 0, 0])) > 0.1
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(own), strict=True):
        np.testing.assert_allclose(a, b, atol=3e-6)
    output = output_of(model, X, key=jr.key(3)).output
    np.testing.assert_allclose(output_of(network, X), output, atol=3e-6)


def test_images_of_two_blocks_with_points_are_the_same_network():
    """With two scales, and only the last layer of f_h random. Catches (seen) points
    that lose their scale, and a second block that starts from the first one's input."""
    model = SDEBNN.for_images(
        (8, 8, 1),
        3,
        blocks=(1, 1),
        width=4,
        prior=WeightPrior(rate=0.0, sigma=0.5),
        where=lambda f_h: f_h.layers[-1],
        start_width=0.3,
        key=jr.key(0),
    )
    x = jr.normal(jr.key(1), (2, 8, 8, 1))
    network = normals_behind(model, whiten(model), x, key=jr.key(4))
    output = output_of(model, x, key=jr.key(4)).output
    np.testing.assert_allclose(output_of(network, x), output, atol=1e-5)


@pytest.mark.parametrize("coordinates", [None, LevyCiesielski(4)])
def test_a_window_of_noise_is_kept(coordinates):
    """Before it weights decay, behind it too, and in it their variance grows. Catches
    (seen) modes that run over the whole depth."""
    prior = WeightPrior(rate=0.5, sigma=0.7, window=(0.25, 0.75), is_relative=False)
    how = Integrator(stepsize=Fixed(0.125))
    network = whiten(small_model(prior=prior, integrator=how), coordinates)
    (block,) = _whitened_blocks(network)
    matrix = block.coordinates.matrix(GRID, 0.5, (0.25, 0.75))
    variance = (matrix**2).sum(axis=1)
    inside = (1 - np.exp(-2 * 0.5 * (GRID[2:7] - 0.25))) / (2 * 0.5)
    np.testing.assert_allclose(variance[:2], 0, atol=1e-12)
    np.testing.assert_allclose(variance[2:7], inside, atol=1e-12)
    decay = inside[-1] * np.exp(-2 * 0.5 * (GRID[6:] - 0.75))
    np.testing.assert_allclose(variance[6:], decay, atol=1e-12)
    assert block.path.layers[0].layer.weight.shape[0] == 4


def test_weights_that_revert_to_their_start_do_not_decay():
    prior = WeightPrior(rate=2.0, reverts_to_start=True)
    network = whiten(small_model(prior=prior))
    (states,) = network.trajectory(X, np.array([0.0, 1.0]))
    for leaf in jax.tree.leaves(states.weights):
        np.testing.assert_allclose(leaf[1], leaf[0], rtol=1e-5)


def test_the_network_starts_where_the_model_does():
    """At its w0 and readout, without noise. Catches (seen) a readout that is divided
    by its scale twice."""
    model = small_model(prior=WeightPrior(rate=0.0))
    twin = without_noise(model)
    output = twin(X, key=jr.key(0)).output
    found = whiten(model, GridIncrements(), point_scale=0.3)(X)
    np.testing.assert_allclose(found, output, atol=1e-5)
    still = whiten(twin)
    assert "path" not in still.parameter_parts()
    np.testing.assert_allclose(still(X), output, atol=1e-5)


def test_a_shift_of_the_modes_costs_what_the_path_kl_says():
    """Cameron and Martin: ½ Σ μ² is ∫ ½ h'² dt of the shift's derivative, which is what
    the SDE-BNN pays for the drift σ h'. Catches (seen) a path of twice the length."""
    mean = np.array([0.8, -1.1, 0.5, 0.9])

    class Shift(eqx.Module):
        """σ h'(t), the same for all weights, constant on each quarter."""

        sigma: float = eqx.field(static=True)

        def __call__(self, t, w, summary):
            grid = np.linspace(0.0, 1.0, 5)
            h = LevyCiesielski(4).matrix(grid, 0.0, _WHOLE) @ mean
            slope = jnp.asarray(np.diff(h) * 4, jnp.float32)
            step = jnp.clip((t * 4 + 1e-4).astype(int), 0, 3)
            return jax.tree.map(lambda a: jnp.full_like(a, self.sigma * slope[step]), w)

    prior = WeightPrior(rate=0.0, sigma=0.3, is_relative=False)
    how = Integrator(stepsize=Fixed(0.125))
    model = small_model(prior=prior, integrator=how, start_width=None)
    (block,) = blocks_of(model)
    drifted = eqx.tree_at(lambda b: b.drift, block, Shift(0.3))
    model = eqx.tree_at(lambda m: m.layers[1], model, drifted)
    weights = eqx.filter(block.dynamics, eqx.is_inexact_array)
    num_weights = sum(a.size for a in jax.tree.leaves(weights))
    kl = 0.5 * (mean**2).sum() * num_weights
    found = model(X, key=jr.key(0)).terms["kl_path"]
    assert float(found) == pytest.approx(kl, rel=1e-4)
    # And the shifted modes are the weights of the shifted equation.
    network = whiten(model, LevyCiesielski(4))
    like = lambda a: jnp.broadcast_to(
        jnp.asarray(mean, a.dtype).reshape(-1, *(1,) * (a.ndim - 1)), a.shape
    )
    where = lambda n: _whitened_blocks(n)[0].path
    network = eqx.tree_at(where, network, jax.tree.map(like, where(network)))
    noise_free = without_noise(model)
    (own,) = trajectory(noise_free, X, key=jr.key(0))
    (moved,) = trajectory(network, X)
    np.testing.assert_allclose(moved.hidden, own.hidden, atol=1e-5)


def test_parts_hold_every_array_once():
    """Catches (seen) points of f_h that belong to no part."""
    where = lambda f_h: f_h.layers[-1]
    network = whiten(small_model(where=where))
    parts = network.parameter_parts()
    assert set(parts) == {"start", "path", "points"}
    held = [
        id(a)
        for part in parts.values()
        for a in jax.tree.leaves(part(network))
        if eqx.is_inexact_array(a)
    ]
    arrays = jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array))
    assert sorted(held) == sorted(map(id, arrays))
    (block,) = _whitened_blocks(network)
    assert jax.tree.leaves(block.points.numbers)


def test_the_same_numbers_serve_any_step():
    """Halving the step of modes converges; increments take steps of theirs alone."""
    network = whiten(small_model(integrator=Integrator(stepsize=Fixed(0.125))))
    modes = whiten(
        small_model(integrator=Integrator(stepsize=Fixed(0.125))), LevyCiesielski(4)
    )
    draw = lambda n: jax.tree.map(
        lambda a: jr.normal(jr.key(a.size), a.shape) if eqx.is_inexact_array(a) else a,
        n,
    )
    network, modes = draw(network), draw(modes)
    at = lambda n, dt: with_solver(n, stepsize=Fixed(dt))(X)
    errors = [
        float(jnp.abs(at(modes, dt) - at(modes, 1 / 512)).max())
        for dt in (0.125, 1 / 16, 1 / 32)
    ]
    assert errors[2] < errors[1] < errors[0]
    assert at(network, 0.25).shape == (6, 1)
    with pytest.raises(ValueError, match=r"increments are those of 8 steps.*0\.125"):
        at(network, 1 / 16)


def test_checkpointing_has_the_same_gradient():
    """Catches (seen) a path that is not differentiated."""
    make = lambda gradient: whiten(
        small_model(integrator=Integrator(Heun(), Fixed(0.125), gradient))
    )
    network = make(Integrator().gradient)
    loss = lambda n: jnp.sum(n(X) ** 2)
    plain = eqx.filter_grad(loss)(network)
    again = eqx.filter_grad(loss)(make(Checkpointed()))
    (path,) = [b.path for b in _whitened_blocks(plain)]
    assert float(jnp.abs(path.layers[0].layer.weight).min()) > 0
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(again), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-6)


def test_checkpointing_keeps_little():
    """Sixteen times the steps take less than a quarter of what storing them all takes.
    Catches (seen) a gradient that is not handed to the loop."""

    def scratch(gradient, num_steps: int) -> int:
        how = Integrator(EulerMaruyama(), Fixed(1 / num_steps), gradient)
        network = whiten(small_model(integrator=how), LevyCiesielski(2))
        params, rest = eqx.partition(network, eqx.is_inexact_array)
        x = jnp.ones((500, 2))
        loss = lambda params: jnp.sum(eqx.combine(params, rest)(x) ** 2)
        compiled = jax.jit(jax.grad(loss)).lower(params).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert scratch(Checkpointed(), 256) < scratch(Backprop(), 256) / 4
    assert scratch(Checkpointed(), 256) < 8 * scratch(Checkpointed(), 16)


def _with(integrator: Integrator, **changes) -> SDEBNN:
    return small_model(integrator=integrator, **changes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: whiten(_with(Integrator(stepsize=Fixed(0.25))), LevyCiesielski(8)),
            r"4 steps.*`num_modes` is 8.*Fixed\(0.125\)",
        ),
        (
            lambda: whiten(_with(Integrator(Heun(), Adaptive()))),
            r"known beforehand, got `Adaptive`",
        ),
        (
            lambda: whiten(_with(Integrator(SRA1(), Fixed(0.25))))(X),
            r"`SRA1` is for equations with noise",
        ),
        (
            lambda: whiten(
                _with(Integrator(ReversibleHeun(), Fixed(0.25), Reversible()))
            )(X),
            r"no `Reversible` gradient: use `Checkpointed\(\)`",
        ),
        (lambda: whiten(small_model(), point_scale=0.0), r"`point_scale` must be"),
        (
            lambda: expand_parameters(whiten(small_model())),
            r"arrays of `WhitenedSDEBNN` are coordinates",
        ),
        (lambda: LevyCiesielski(0), r"`num_modes` must be a whole number from 1"),
        (
            lambda: whiten(small_model(), GridIncrements((0.0, 0.5, 1.0))),
            r"increments are those of 2 steps",
        ),
        (
            lambda: whiten(_with(Integrator(stepsize=Grid(GRID)))),
            r"the solver's `Grid\(ts\)` is one: use `Fixed\(dt\)`",
        ),
        (
            lambda: with_roughness(whiten(small_model()), 2),
            r"R_2",
        ),
    ],
    ids=[
        "modes",
        "adaptive",
        "sra1",
        "reversible",
        "scale",
        "products",
        "none",
        "grid",
        "array",
        "rough",
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_something_else_than_an_sdebnn_is_refused():
    with pytest.raises(TypeError, match="or a `LatentSDE`, got `Determ"):
        whiten(Deterministic(MLP(2, 1, (), key=jr.key(0))))


def test_normalised_images_do_not_mind_how_wide_the_prior_is():
    """The hidden units of a prior ten times as wide are as large, where f_h's without
    norms are not. Catches (seen) a stack that is not normalised."""
    x = jr.normal(jr.key(1), (2, 14, 14, 1))

    def spread(scale: float, is_normalised: bool) -> float:
        model = SDEBNN.for_images(
            (14, 14, 1),
            3,
            blocks=(1, 1) if is_normalised else (1,),
            width=4,
            is_normalised=is_normalised,
            prior=WeightPrior(scale=scale),
            integrator=Integrator(EulerMaruyama(), Fixed(0.5)),
            key=jr.key(0),
        )
        network = whiten(model, LevyCiesielski(2))
        params, static = eqx.partition(network, eqx.is_inexact_array)
        leaves, tree = jax.tree.flatten(params)
        keys = jr.split(jr.key(2), len(leaves))
        drawn = [jr.normal(k, a.shape) for k, a in zip(keys, leaves, strict=True)]
        drawn = eqx.combine(jax.tree.unflatten(tree, drawn), static)
        return float(jnp.std(drawn(x)))

    assert spread(20.0, True) < 3 * spread(2.0, True)
    assert spread(20.0, False) > 5 * spread(2.0, False)


def test_normalised_images_halve_and_double():
    """7 by 7 units of twice the channels after 14 by 14; pooled to 3 by 3."""
    model = SDEBNN.for_images(
        (28, 28, 1),
        10,
        blocks=(1, 1),
        width=8,
        augment=4,
        space_to_depth_first=True,
        is_normalised=True,
        key=jr.key(0),
    )
    first, second = blocks_of(model)
    assert first.dynamics.layers[0].layer.weight.shape == (3, 3, 8, 8)
    assert second.dynamics.layers[0].layer.weight.shape == (3, 3, 16, 16)
    assert model.readout.network.layers[0].weight.shape == (3 * 3 * 16, 10)
