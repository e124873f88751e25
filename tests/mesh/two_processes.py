"""One of two processes: cases on a device of its own, and on a mesh of both's."""

import json
import sys

import jax
import numpy as np

# blackjax, which comes with the samplers, computes something when it is imported.
jax.distributed.initialize(f"localhost:{sys.argv[1]}", 2, int(sys.argv[2]))

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
    try:
        orn.sample(
            orn.nn.MLP(1, 1, [2], key=jax.random.key(0)),
            orn.data.Split(np.zeros((4, 1), "f"), np.zeros((4, 1), "f")),
            orn.Gaussian(1.0),
            kernel=orn.SGLD(1e-4),
            prior=orn.GaussianPrior(1.0),
            key=jax.random.key(0),
            num_chains=2,
            folder="nowhere",
            mesh=jax.make_mesh((2,), ("chains",)),
        )
    except ValueError as error:
        refusal = str(error)
    print(json.dumps({"found": found, "refusal": refusal}))


if __name__ == "__main__":
    main()
