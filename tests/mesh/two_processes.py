"""One of two processes: cases on a device of its own, and on a mesh of both's."""

import json
import sys
from pathlib import Path

import jax
import numpy as np

# blackjax, which comes with the samplers, computes something when it is imported.
jax.distributed.initialize(f"localhost:{sys.argv[1]}", 2, int(sys.argv[3]))

from cases import CASES, difference  # noqa: E402
from jax.experimental.multihost_utils import sync_global_devices  # noqa: E402

import ornstein as orn  # noqa: E402

_MESHES = {"mean field by IVON": "data", "SGLD": "chains", "HMC": "data"}


def main() -> None:
    assert jax.device_count() == 2 * jax.local_device_count() == 2
    # Gloo gives its first meeting half a minute, which compiling alone may take.
    sync_global_devices("start")
    found = {}
    for name, axis in _MESHES.items():
        mesh = jax.make_mesh((2,), (axis,))
        found[name] = difference(CASES[name](None), CASES[name](mesh))
        print(name, found[name], file=sys.stderr, flush=True)
    split = orn.data.Split(np.ones((4, 1), "f"), np.ones((4, 1), "f"))
    sample = lambda key, **kept: orn.sample(
        orn.nn.MLP(1, 1, [2], key=jax.random.key(0)),
        split,
        orn.Gaussian(1.0),
        kernel=orn.SGLD(1e-4),
        prior=orn.GaussianPrior(1.0),
        key=jax.random.key(key),
        num_samples=5,
        num_warmup=2,
        num_chains=2,
        mesh=jax.make_mesh((2,), ("chains",)),
        **kept,
    )
    folder = Path(sys.argv[2])
    sums = lambda samples: [
        float(np.sum(np.asarray(a, np.float64)))
        for a in jax.tree.leaves(samples.positions)
    ]
    both = {"samples": sums(sample(0))}
    both["in the folder"] = sums(sample(0, folder=folder))
    try:
        sample(jax.process_index())
    except ValueError as error:
        refusal = str(error)
    print(json.dumps({"found": found, "refusal": refusal, **both}))


if __name__ == "__main__":
    main()
