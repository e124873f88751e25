"""The programs of a step that `fit` and `sample` compile for K devices.

Caught on their way to the compiler, with what they are given, so that what is read is
what runs.
"""

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

import ornstein as orn
from ornstein.sampling import _advance
from ornstein.train import _loop

from . import model
from .hlo import Program

IN_SIZE, OUT_SIZE, WIDTHS, SDE_WIDTHS = 64, 10, (256, 256), (64, 64)
ROWS, CHAINS, LEAPFROG, COMPONENTS = 256, 2, 5, 4
# The defaults of `SDEBNN.for_vectors`.
SDE_STEPS, DRIFT_WIDTHS, AUGMENT = 20, (64, 64), 2


class Caught(NamedTuple):
    """A program, and what runs it once more.

    Attributes:
        compiled: as JAX has it.
        rest_bytes: of its arguments on a device, those that are no state: rows, and
            room for records.
        again: runs it on what it gave before.
    """

    compiled: Any
    rest_bytes: float
    again: Callable[[], Any]

    @property
    def program(self) -> Program:
        """Its text, read."""
        return Program(self.compiled.as_text())

    def counts(self) -> dict[str, float]:
        """What the compiler says of it, for each device."""
        memory, program = self.compiled.memory_analysis(), self.program
        return {
            "flops": program.flops,
            "state_bytes": memory.argument_size_in_bytes - self.rest_bytes,
            "temp_bytes": memory.temp_size_in_bytes,
            "sent_bytes": program.bytes_a_device(),
            "num_collectives": sum(one.times for one in program.sent),
            "num_unknown_loops": program.num_unknown_loops(),
            "xla_flops_loops_once": self.compiled.cost_analysis()["flops"],
        }


class Case(NamedTuple):
    """A method on K devices.

    Attributes:
        catch: its program.
        on_paper: what that should cost.
    """

    catch: Callable[[], Caught]
    on_paper: model.Cost


def mlp_sizes(in_size: int, widths: tuple[int, ...], out_size: int) -> model.Network:
    """Of `orn.nn.MLP`."""
    sizes = [in_size, *widths, out_size]
    products = [a * b for a, b in itertools.pairwise(sizes)]
    num_inputs = sum(sizes[:-1])
    return model.Network(
        num_weights=sum(products) + sum(sizes[1:]),
        num_products=sum(products),
        num_first=products[0],
        num_nodes=num_inputs,
        num_kept=num_inputs,
    )


NETWORK = mlp_sizes(IN_SIZE, WIDTHS, OUT_SIZE)


def dynamics_sizes(size: int, widths: tuple[int, ...]) -> model.Network:
    """Of `TimeMLP`, whose layers see depth as one more input."""
    plain = mlp_sizes(size, widths, size)
    return plain._replace(num_weights=plain.num_weights + sum(widths) + size)


def cases(devices: int) -> dict[str, Case]:
    """Each method with as much work for each device, whatever their number."""
    return _trained(devices) | _sampled(devices)


def _trained(k: int) -> dict[str, Case]:
    def fit(make: Callable[[], Any], axis: str = "data", **options: Any):
        mesh = _along(axis, k)
        return lambda: _of_fit(make(), ROWS * k, mesh, options)

    mean_field = partial(model.mean_field, NETWORK, rows=ROWS, devices=k)
    return {
        "mean field by Adam": Case(fit(_mean_field), mean_field()),
        "mean field by Adam, 2 draws": Case(
            fit(_mean_field, num_draws=2), mean_field(draws=2)
        ),
        "mean field by Adam, fsdp": Case(
            fit(_mean_field, "fsdp"),
            model.mean_field_cut(NETWORK, rows=ROWS, devices=k),
        ),
        "mean field by IVON": Case(
            fit(_mean_field, optimiser=orn.IVON()),
            model.ivon(NETWORK, rows=ROWS, devices=k),
        ),
        "implicit, 2 draws": Case(
            fit(_implicit, **orn.train.implicit_options()),
            model.implicit(NETWORK, rows=ROWS, components=COMPONENTS, devices=k),
        ),
        "SDE-BNN": Case(
            fit(_sde_bnn),
            model.sde_bnn(
                dynamics_sizes(IN_SIZE + AUGMENT, SDE_WIDTHS),
                # The readout, whose inputs need gradients.
                mlp_sizes(IN_SIZE + AUGMENT, (), OUT_SIZE)._replace(num_first=0),
                rows=ROWS,
                num_steps=SDE_STEPS,
                drift_widths=DRIFT_WIDTHS,
                num_hidden=math.prod(DRIFT_WIDTHS),
                devices=k,
            ),
        ),
    }


def _sampled(k: int) -> dict[str, Case]:
    def sample(kernel: Any, axis: str, *, num_chains: int, num_rows: int):
        mesh = _along(axis, k)
        return lambda: _of_sample(kernel, mesh, num_chains, num_rows)

    hmc = partial(model.hmc, NETWORK, rows=ROWS, num_leapfrog=LEAPFROG)
    kernel = orn.HMC(LEAPFROG, step_size=1e-3)
    apart = {"num_chains": CHAINS * k, "num_rows": ROWS}
    return {
        "HMC, chains": Case(sample(kernel, "chains", **apart), hmc(chains=CHAINS)),
        "HMC, data": Case(
            sample(kernel, "data", num_chains=1, num_rows=ROWS * k), hmc(devices=k)
        ),
        "SGLD, chains": Case(
            sample(orn.SGLD(1e-5), "chains", **apart),
            model.sgld(NETWORK, rows=ROWS, chains=CHAINS),
        ),
    }


def _along(axis: str, k: int) -> Mesh:
    """The first k devices."""
    return Mesh(np.array(jax.devices()[:k]), (axis,))


def _of_fit(network: Any, num_rows: int, mesh: Mesh, options: dict) -> Caught:
    """The step of `fit` on batches that come one by one: a program without a loop.

    With the data in memory it is the body of a loop of unknown length, and sends as
    much (seen for mean field on eight devices).
    """

    def run() -> None:
        orn.fit(
            network,
            _data(num_rows),
            orn.Categorical(),
            key=jax.random.key(0),
            num_epochs=1,
            batch_size=num_rows,
            in_memory=False,
            mesh=mesh,
            **options,
        )

    compiled, (given, carry) = _caught(_loop, "_run_one_step", run)
    (_, batch, *_), _ = given

    def again() -> Any:
        nonlocal carry
        carry = jax.block_until_ready(compiled(given, carry))

    rest_bytes = _bytes(batch) / mesh.size + _bytes(carry[1])
    return Caught(_of_jax(compiled), rest_bytes, again)


def _of_sample(kernel: Any, mesh: Mesh, num_chains: int, num_rows: int) -> Caught:
    """The program of `sample` that draws some samples: told to draw one."""

    def run() -> None:
        orn.sample(
            _network(),
            _data(num_rows),
            orn.Categorical(),
            kernel=kernel,
            prior=orn.GaussianPrior(1.0),
            key=jax.random.key(0),
            num_samples=1,
            num_warmup=0,
            num_chains=num_chains,
            batch_size=num_rows,
            mesh=mesh,
        )

    compiled, args = _caught(_advance.Sampler, "draw", run, capacity=1)
    sampler, states, *numbers = args

    def again() -> Any:
        nonlocal states
        states, *_ = jax.block_until_ready(
            compiled(sampler, states, *numbers, capacity=1)
        )

    whole = _bytes((sampler.potential.x, sampler.potential.y))
    return Caught(_of_jax(compiled), whole / mesh.shape.get("data", 1), again)


class _Enough(Exception):
    """Ends a run whose program is known."""


def _caught(place: Any, name: str, run: Callable[[], None], **static: Any) -> Any:
    """The program of a jitted function when it is first called, and its arguments."""
    jitted = getattr(place, name)
    found: list[Any] = []

    def stop(*args: Any, **options: Any) -> None:
        assert options == static, options
        found.extend([jitted.lower(*args, **options).compile(), args])
        raise _Enough

    setattr(place, name, stop)
    try:
        run()
    except _Enough:
        return found
    finally:
        setattr(place, name, jitted)
    raise AssertionError(f"{name} was not called")


def _of_jax(compiled: Any) -> Any:
    """JAX's own, of Equinox's."""
    return getattr(compiled, "compiled", compiled)


def _bytes(tree: Any) -> int:
    arrays = jax.tree.leaves(eqx.filter(tree, eqx.is_array_like))
    return sum(np.size(a) * jnp.asarray(a).dtype.itemsize for a in arrays)


def _data(num_rows: int) -> orn.data.Split:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(num_rows, IN_SIZE)).astype("float32")
    return orn.data.Split(x, rng.integers(OUT_SIZE, size=num_rows))


def _network() -> orn.nn.MLP:
    key = jax.random.key(0)
    return orn.nn.MLP(IN_SIZE, OUT_SIZE, WIDTHS, activation=jnp.tanh, key=key)


def _mean_field() -> orn.MeanField:
    return orn.MeanField(_network())


def _implicit() -> orn.ImplicitBNN:
    return orn.ImplicitBNN(_network(), num_components=COMPONENTS, key=jax.random.key(0))


def _sde_bnn() -> orn.SDEBNN:
    return orn.SDEBNN.for_vectors(
        IN_SIZE,
        OUT_SIZE,
        width_sizes=SDE_WIDTHS,
        num_inducing=0,
        key=jax.random.key(0),
    )
