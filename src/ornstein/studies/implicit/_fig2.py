r"""The loss around an implicit BNN's components: figure 2 of Trinh et al. (2020).

Notation: $U$ are the weights, and $W_k = U \, \mathrm{diag}(\mu_k)$ those of component
k, all layers in one vector. The plane goes through $U$, along the first two principal
components of $W_k - U$; the loss is that of the network with each point's weights.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from ..._types import Array, Float
from ...data import Split
from ...functions import ImplicitBNN
from ...network import Network
from ...plot import loss_surfaces
from ...recipe import ScaleName
from ...report import save_figure
from .._experiment import Experiment, Study
from ._lenet import LENET, load_or_instead, tested
from ._trained_networks import trained

_METHOD = "ibnn-8"
_GRID: dict[ScaleName, int] = {"quick": 17, "gpu": 41, "full": 41}
_ROWS: dict[ScaleName, int] = {"quick": 1000, "gpu": 10_000, "full": 10_000}
_MARGIN = 0.5


class Plane(NamedTuple):
    """A plane in the space of a network's parameters.

    Attributes:
        origin: $U$, the parameters at (0, 0).
        axes: orthonormal.
        points: where the components lie, orthogonally projected.
        shares: of the squared distances from $U$, along each principal component.
    """

    origin: Float[Array, " parameters"]
    axes: Float[Array, "2 parameters"]
    points: Float[Array, "components 2"]
    shares: Float[Array, " components"]


def component_plane(model: ImplicitBNN) -> Plane:
    """The plane through $U$ in which the components' weights spread most.

    Args:
        model: with at least two components.
    """
    origin = _parameters(model.to_deterministic("ones").network)
    components = [
        _parameters(model.to_deterministic(k).network) for k in range(model.num_strata)
    ]
    moves = jnp.stack([weights - origin for weights in components])
    # Thin: K rows, however many parameters.
    left, sizes, right = jnp.linalg.svd(moves, full_matrices=False)
    points = left[:, :2] * sizes[None, :2]
    return Plane(origin, right[:2], points, sizes**2 / jnp.sum(sizes**2))


@eqx.filter_jit
def losses(
    network: Network,
    plane: Plane,
    where: Float[Array, "points 2"],
    x: Float[Array, "rows ..."],
    y: Array,
) -> tuple[Float[Array, " points"], Float[Array, " points"]]:
    """Mean NLL (nats) and error (%) of the networks at points of a plane.

    Args:
        network: whose parameters are replaced.
        plane: of the points.
        where: their coordinates.
        x: inputs.
        y: class numbers.
    """
    params, rest = eqx.partition(network, eqx.is_inexact_array)
    _, unravel = ravel_pytree(params)

    def of_point(point):
        at = unravel(plane.origin + point @ plane.axes)
        log_probs = jax.nn.log_softmax(eqx.combine(at, rest)(x))
        nll = -jnp.mean(jnp.take_along_axis(log_probs, y[:, None], axis=1))
        return nll, 100 * jnp.mean(jnp.argmax(log_probs, axis=1) != y)

    return jax.lax.map(of_point, where)


def _run(study: Study) -> list[dict[str, Any]]:
    case, data, notes = load_or_instead(LENET[study.scale], "mnist")
    for note in notes:
        study.say(note)
    scores = tested(study, case, _METHOD, data)
    num_rows = _ROWS[study.scale]
    splits = {
        "training": data.train.rows(np.arange(min(num_rows, len(data.train)))),
        "test": data.test.rows(np.arange(min(num_rows, len(data.test)))),
    }

    def compute() -> dict[str, Any]:
        fit, _ = trained(study, case, _METHOD, data)
        assert isinstance(fit.model, ImplicitBNN)
        return _surface(fit.model, splits, _GRID[study.scale])

    settings = case.settings(_METHOD, study.seed)
    settings |= {"grid": _GRID[study.scale], "num_rows": num_rows}
    found = study.piece("surface", settings, compute)
    figure = loss_surfaces(
        np.array(found["xs"]),
        np.array(found["ys"]),
        {name: np.array(values) for name, values in found["surfaces"].items()},
        points=np.array(found["points"]),
        labels=[
            f"principal component {i + 1} ({100 * share:.0f} %)"
            for i, share in enumerate(found["shares"][:2])
        ],
    )
    study.say(f"Wrote {save_figure(study.folder / 'components.png', figure)}")
    names = [f"component {k}" for k in range(len(found["points"]))]
    points = [[0.0, 0.0], *found["points"]]
    rows = []
    for i, (name, point) in enumerate(zip(["U", *names], points, strict=True)):
        at = {"weights": name, "first": point[0], "second": point[1]}
        at["distance"] = found["distances"][i]
        losses_here = {of: values[i] for of, values in found["own"].items()}
        rows.append(at | losses_here | {"data": case.data, "notes": notes})
    together = {"test NLL": scores["nll"], "test error (%)": scores["error_percent"]}
    rows.append({"weights": "mixture"} | together | {"data": case.data, "notes": notes})
    return rows


def _surface(model: ImplicitBNN, splits: dict[str, Split], grid: int) -> dict[str, Any]:
    """The surfaces, and the losses of the components themselves, off the plane."""
    plane = component_plane(model)
    network = model.to_deterministic("ones").network
    points = np.asarray(plane.points)
    corners = np.concatenate([points, np.zeros((1, 2))])
    low, high = corners.min(axis=0), corners.max(axis=0)
    margin = _MARGIN * (high - low).max()
    xs, ys = np.linspace(low - margin, high + margin, grid, dtype=np.float32).T
    where = jnp.stack(jnp.meshgrid(jnp.asarray(xs), jnp.asarray(ys)), -1).reshape(-1, 2)
    own = [model.to_deterministic(k).network for k in range(model.num_strata)]
    distances = [jnp.linalg.norm(_parameters(w) - plane.origin) for w in own]
    found: dict[str, Any] = {
        "xs": xs.tolist(),
        "ys": ys.tolist(),
        "points": points.tolist(),
        "shares": np.asarray(plane.shares).tolist(),
        "distances": [0.0, *map(float, distances)],
        "surfaces": {},
        "own": {},
    }
    for name, split in splits.items():
        x, y = jnp.asarray(split.x), jnp.asarray(split.y)
        surfaces = losses(network, plane, where, x, y)
        alone = [
            losses(w, plane._replace(origin=_parameters(w)), jnp.zeros((1, 2)), x, y)
            for w in [network, *own]
        ]
        for i, loss in enumerate(("NLL", "error (%)")):
            title = f"{name} {loss}"
            values = np.asarray(surfaces[i]).reshape(grid, grid)
            found["surfaces"][title] = values.tolist()
            found["own"][title] = [float(pair[i][0]) for pair in alone]
    return found


def _parameters(network: Network) -> Float[Array, " parameters"]:
    return ravel_pytree(eqx.filter(network, eqx.is_inexact_array))[0]


IBNN_FIG2 = Experiment(
    "the loss in the plane of an implicit BNN's components, around its weights",
    "Trinh et al. (2020), figure 2: eight components of LeNet on Fashion-MNIST "
    "populate one wide mode around U.",
    _run,
)
"""`ornstein reproduce ibnn-fig2`."""
