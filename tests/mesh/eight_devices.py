"""Run cases on one device and on meshes of eight; print the differences as JSON."""

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
)

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from cases import CASES, LOOPS, MESHES, difference, resumed, unbroken

import ornstein as orn
from ornstein import _gather, _mesh
from ornstein.nn.conv import _winograd

_GATHERS = ("all-gather", "all-to-all", "collective-permute")


def refusals() -> dict[str, str]:
    """What a mesh that cannot be is told, by what is wrong with it."""
    mesh = lambda **axes: jax.make_mesh(tuple(axes.values()), tuple(axes))
    wrong = {
        "rows do not divide": lambda: CASES["mean field"](mesh(data=5)),
        "chains do not divide": lambda: CASES["SGLD"](mesh(chains=3)),
        "draws do not divide": lambda: CASES["predict"](mesh(draws=3)),
        "axis without use": lambda: CASES["mean field"](mesh(chains=2)),
        "no mesh": lambda: CASES["mean field"]("data=8"),
    }
    found = {}
    for name, run in wrong.items():
        try:
            run()
        except (TypeError, ValueError) as error:
            found[name] = str(error)
    return found


def shares() -> dict[str, float]:
    """What one device has of the whole."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "fsdp"))
    weights = {"matrix": jnp.ones((64, 128)), "bias": jnp.ones(128)}
    cut = _mesh.put_parameters(weights, mesh)
    here = sum(a.addressable_shards[0].data.size for a in jax.tree.leaves(cut))
    rows = _mesh.put_rows(jnp.ones((1024, 64)), mesh)

    def work(mesh) -> float:
        def step(weights, rows):
            loss = lambda w: jnp.mean(jnp.tanh(_mesh.over_rows(rows, mesh) @ w) ** 2)
            return _mesh.as_parameters(jax.grad(loss)(weights), mesh)

        matrix, all_rows = weights["matrix"], jnp.ones((1024, 64))
        if mesh is not None:
            matrix, all_rows = cut["matrix"], rows
        compiled = jax.jit(step).lower(matrix, all_rows).compile()
        return float(compiled.cost_analysis()["flops"])

    return {
        "parameters": here / sum(a.size for a in weights.values()),
        "rows": rows.addressable_shards[0].data.shape[0] / rows.shape[0],
        "floating-point work of a step": work(mesh) / work(None),
    }


class _Counting(eqx.Module):
    """A network that writes down in how many parts its rows lie, where it is traced."""

    network: orn.nn.MLP
    found: list = eqx.field(static=True)

    def __call__(self, x):
        self.found.append(_mesh.num_row_parts())
        return self.network(x)


def parts_of_doors() -> dict[str, list[int]]:
    """In how many parts each door says that rows lie, the mesh having eight."""
    x = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
    data, likelihood = orn.data.Split(x, x[:, :1]), orn.Gaussian(0.3)
    mesh, keys = jax.make_mesh((8,), ("data",)), jax.random.split(jax.random.key(0), 5)
    found: dict[str, list[int]] = {}

    def network(door: str) -> _Counting:
        found[door] = []
        return _Counting(orn.nn.MLP(3, 1, [4], key=keys[0]), found[door])

    def trained(door: str, mesh, **options) -> orn.Fit:
        model = orn.Deterministic(network(door))
        how = {"num_epochs": 1, "batch_size": 32, "mesh": mesh, **options}
        return orn.fit(model, data, likelihood, key=keys[1], **how)

    trained("in memory", mesh)
    trained("batch by batch", mesh, in_memory=False)
    alone = trained("predict", None)
    found["predict"].clear()
    orn.predict(alone, x, key=keys[2], num_draws=1, mesh=mesh)
    kernels = {"all rows": orn.HMC(2, step_size=0.02), "batches": orn.SGLD(1e-4)}
    for name, kernel in kernels.items():
        orn.sample(
            network(name),
            data,
            likelihood,
            kernel=kernel,
            prior=orn.GaussianPrior(1.0),
            key=keys[3],
            num_samples=2,
            num_warmup=0,
            num_chains=1,
            batch_size=32 if kernel.is_minibatch else None,
            mesh=mesh,
        )
    return {door: sorted(set(parts)) for door, parts in found.items()}


def loops_over_images() -> dict[str, dict[str, float]]:
    """Forms of convolutions that take some images after others, images shared out.

    How often they are brought together, and numbers beside one device's.
    """
    _winograd._WIDE_BYTES = 2**16  # so that there is a loop over all 64 images
    x_key, kernel_key = jax.random.split(jax.random.key(0))
    x = jax.random.normal(x_key, (64, 16, 16, 64))
    kernel = jax.random.normal(kernel_key, (3, 3, 64, 64)) / 24
    scales = jnp.array([1.0, -0.5])

    def loss(x, kernel):
        y = jax.vmap(lambda scale: orn.nn.conv2d(scale * x, kernel))(scales)
        return jnp.mean(y**2)

    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
    found = {}
    for form in LOOPS:
        programs = {}
        for name, there in (("one", None), ("eight", mesh)):
            rows, whole = _mesh.put_rows(x, there), _mesh.everywhere(kernel, there)

            def gradient(x, kernel, there=there, form=form):
                with orn.nn.conv_form(form), _mesh.rows_in_parts(there):
                    return jax.grad(loss, (0, 1))(x, kernel)

            compiled = jax.jit(gradient).lower(rows, whole).compile()
            gradients = jax.device_get(compiled(rows, whole))
            programs[name] = (
                compiled,
                dict(zip(("x", "kernel"), gradients, strict=True)),
            )
        (_, alone), (eight, shared) = programs["one"], programs["eight"]
        found[form] = {
            "gathers": sum(eight.as_text().count(f" {name}") for name in _GATHERS),
            "difference": difference(alone, shared),
        }
    return found


def bytes_of_saving() -> dict[str, list]:
    """On each device, of a cut array, and when the host has a copy of all of it."""
    mesh = jax.make_mesh((8,), ("fsdp",))
    cut = _mesh.put_parameters({"matrix": np.ones((2048, 64), np.float32)}, mesh)
    jax.block_until_ready(cut)

    def held() -> list[int]:
        """Of buffers, as views of a shard are arrays, too."""
        buffers = {
            (shard.device.id, shard.data.unsafe_buffer_pointer()): shard.data.nbytes
            for array in jax.live_arrays()
            for shard in array.addressable_shards
        }
        found = [0] * jax.device_count()
        for (device, _), num_bytes in buffers.items():
            found[device] += num_bytes
        return found

    before = held()
    host = _gather.on_host(cut, mesh)
    assert np.array_equal(host["matrix"], np.ones((2048, 64)))
    assert jax.tree.leaves(_gather.gathered(cut, mesh))[0].devices() == {
        jax.devices()[0]
    }
    parts = _gather._in_parts([0, 1, 2, 3], [2**31, 2**28 - 2, 5, 1].__getitem__)
    return {"before": before, "saving": held(), "parts": parts}


def gone_on() -> dict[str, dict[str, float]]:
    """A fit stopped on data=2, fsdp=2 goes on elsewhere; beside one device alone."""
    mesh = lambda **axes: jax.make_mesh(
        tuple(axes.values()), tuple(axes), devices=jax.devices()[:4]
    )
    others = {"fsdp=4": mesh(fsdp=4), "one device": None}
    whole, found = unbroken(), {}
    for name, other in others.items():
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            found[name] = difference(whole, resumed(mesh(data=2, fsdp=2), other, run))
    return found


def main() -> None:
    assert jax.device_count() == 8
    found = {}
    for name in sys.argv[1:] or CASES:
        axes = MESHES[name]
        mesh = jax.make_mesh(tuple(axes.values()), tuple(axes))
        found[name] = difference(CASES[name](None), CASES[name](mesh))
        print(name, found[name], file=sys.stderr, flush=True)
    also = {"refusals": refusals(), "shares": shares(), "gone on": gone_on()}
    also["bytes of saving"] = bytes_of_saving()
    also["loops over images"] = loops_over_images()
    also["parts of doors"] = parts_of_doors()
    print(json.dumps({"found": found, **also}))


if __name__ == "__main__":
    main()
