"""Recipes of runs of Markov chains: what `ornstein sample` fills in and keeps."""

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any

from ._chain_starts import FROM_MEMBERS, FROM_PRIOR
from ._kernels import is_minibatch, num_steps_of, steps_for
from ._recipe import Recipe, changed, read_part
from ._sampling_options import OF_WHITENED, KernelName, SampledNetwork, SamplingOptions
from .models import HIERARCHICAL, WHITENED
from .options import DataOptions, LikelihoodOptions
from .presets import TABLE_NOISE, kind_of_data


@dataclasses.dataclass(frozen=True)
class SampleRecipe:
    """Every choice of a run of chains.

    Attributes:
        data: what is learned from.
        likelihood: what an output says about a target.
        sampling: the network, its prior, and the chains.
    """

    data: DataOptions = dataclasses.field(default_factory=DataOptions)
    likelihood: LikelihoodOptions = dataclasses.field(default_factory=LikelihoodOptions)
    sampling: SamplingOptions = dataclasses.field(default_factory=SamplingOptions)

    @property
    def recipe(self) -> Recipe:
        """The recipe of the plain network, for data, keys and predictions."""
        options = self.sampling
        own = {}
        if options.network == WHITENED:
            own = {name: getattr(options, name) for name in OF_WHITENED}
            own["prior_scale"] = own.pop("start_scale")
        return Recipe(data=self.data, likelihood=self.likelihood).changed(
            model="deterministic",
            network=options.network,
            width=options.width,
            activation=options.activation,
            batch_size=options.batch_size,
            test_draws=options.test_draws,
            seed=options.seed,
            **own,
        )

    def changed(self, **changes: Any) -> "SampleRecipe":
        """The recipe with some options changed, each by its own name.

        Raises:
            ValueError: for a name that no option has.
        """
        return changed(self, changes, command="sample")

    def for_rows(self, num_data: int) -> "SampleRecipe":
        """The recipe with trajectories of a length, where none was given.

        Args:
            num_data: training rows.
        """
        num_steps = num_steps_of(self.sampling, num_data)
        return self.changed(num_integration_steps=num_steps)

    def to_json(self) -> dict[str, Any]:
        """As nested JSON objects."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, saved: Any) -> "SampleRecipe":
        """What `to_json` wrote.

        Raises:
            ValueError: for something else.
        """
        types = typing.get_type_hints(cls)
        if not isinstance(saved, Mapping) or set(saved) != set(types):
            raise ValueError(
                f"The options of a run of chains have the parts {', '.join(types)}: "
                "give the folder that this version of `ornstein sample` wrote."
            )
        return cls(**{name: read_part(types[name], saved[name]) for name in types})


_PRESETS: dict[str, dict[str, Any]] = {
    "toy": {"kernel": "hmc", "num_samples": 500},
    "vectors": {
        "kernel": "hmc",
        "width": "50",
        # As 38 of 40 splits choose in `ornstein reproduce uci`, by rows held out of
        # their own training rows. That relu at 1.5 is no better was seen on test rows
        # of split 0: log likelihood on yacht -0.47 for -0.05, on concrete -3.01 for
        # -2.96, on kin8nm 1.09 for 1.20.
        "activation": "tanh",
        "prior_scale": 2.0,
        "num_integration_steps": 40,
        **TABLE_NOISE,
    },
    "images": {
        "kernel": "sghmc",
        "width": "100",
        "activation": "relu",
        "num_samples": 50,
        "num_warmup": 2000,
        "thin": 40,
    },
}
_OF_TABLES = {"num_warmup": 100, "num_samples": 50, "start_from": FROM_MEMBERS}
"""Of HMC: few draws at the ends of long trajectories. The median R-hat of 20 outputs
(yacht, split 0, one seed) is 1.19, 1.10 and 1.10 with trajectories of 40, 400 and 1,000
steps and 160,000 to 240,000 gradients a chain, and 1.05 with 4,000 steps and 840,000.
Test scores of that split were seen beside it. On nine tenths of concrete's training
rows (split 0) it is 1.11 with 40 steps (28,000 gradients, from the prior) and 1.02 with
500 (105,000, from members), and the other tenth has an RMSE of 4.5 and 4.2. On wine it
is 1.01 with 40. kin8nm's 54 steps are what about two minutes allow: its worst R-hat
over test rows is then above 2."""
_PATHS_OF_TABLES = {"num_integration_steps": 100, "num_warmup": 50, "num_samples": 50}
"""Of HMC over whitened paths, whose gradient costs 11 of the network mlp's (11.3 with
the 927 rows of concrete, 12.4 with the 7,373 of kin8nm; time of the processor, 4
chains)."""
_OF_PATHS: KernelName = "mclmc"
"""Of an SDE-BNN's paths on tables. On a table of 420 rows HMC's four chains (lengths
below) had an R-hat of 1.61 after 81 s of one core, with 48 of 200 samples after
divergent steps, and these 1.01 after 132 s; NLL of 84 test rows 0.27 and 0.31."""
_PATH_LENGTHS = {"num_integration_steps": 20, "num_warmup": 200, "num_samples": 100}
"""Of other kernels over them."""
_PATHS_OF_IMAGES = {
    "width": "8",
    "augment": 4,
    "blocks": "1-1",
    "normalised": True,
    "activation": "silu",
    "start_scale": 5.0,
    "point_scale": 6.0,
    "dt": 0.5,
    "momentum": 0.95,
    "batch_size": 25,
    "start_from": FROM_MEMBERS,
    "start_steps": 500,
    "num_chains": 2,
    "num_warmup": 2000,
    "num_samples": 150,
    "thin": 40,
}
"""Chains from optimised members: from the prior the way is several times as long."""
_WHITENED = {
    "network": WHITENED,
    "width": "50",
    "activation": "tanh",
    "prior": "gaussian",
    "prior_scale": 1.0,
}
_HIERARCHICAL = {
    "network": HIERARCHICAL,
    "activation": "tanh",
    "prior": "gaussian",
    "prior_scale": 1.0,
    # An optimised member may have learned the noise away, and its scales keep a chain
    # there: on a fold of diabetes one of four stayed, at an NLL of 5.38 for 5.35.
    "start_from": FROM_PRIOR,
}
_MINIBATCH = {"num_warmup": 5000, "num_samples": 250, "thin": 20}
_WHOLE_DATA = {"num_warmup": 200, "num_samples": 100, "thin": 1}
"""Of kernels that see all images at each step, which cost as much as an epoch."""
_FROM_DISK: KernelName = "sghmc"
"""Of rows that stay on disk."""
_OF_KERNEL: dict[KernelName, dict[str, Any]] = {
    # As its authors run it: cheap steps, many of them, from optimised members.
    "mclmc": {
        "num_warmup": 10_000,
        "num_samples": 500,
        "thin": 20,
        "start_from": FROM_MEMBERS,
    },
}


def preset_sampling(
    data: str,
    kernel: KernelName | None = None,
    network: SampledNetwork | None = None,
    *,
    num_data: int | None = None,
    stream: bool = False,
) -> SampleRecipe:
    """What `ornstein sample --data DATA --kernel KERNEL --network NETWORK` starts from.

    Args:
        data: as `load` takes it.
        kernel: another than these data's own.
        network: another than these data's own.
        num_data: training rows, if they are known: of more of them, trajectories of
            HMC on a table are shorter. Else their length stays open: see `for_rows`.
        stream: whether rows stay on disk, where the kernel sees a batch at each step.
    """
    if kernel is None and stream:
        kernel = _FROM_DISK
    kind = kind_of_data(data)
    options = dict(_PRESETS[kind])
    if kernel is None and network == WHITENED and kind == "vectors":
        kernel = _OF_PATHS
    is_hmc = (options["kernel"] if kernel is None else kernel) == "hmc"
    if kind == "vectors" and network is None and (is_hmc or kernel == "nuts"):
        network = HIERARCHICAL
    if kind == "vectors" and is_hmc:
        num_steps = None if num_data is None else steps_for(num_data)
        options |= _OF_TABLES | {"num_integration_steps": num_steps}
    if network == HIERARCHICAL:
        options |= _HIERARCHICAL
    if network == WHITENED:
        options |= _WHITENED
        if kind == "images":
            options |= _PATHS_OF_IMAGES | {"space_to_depth": data != "digits"}
        if kind == "vectors":
            options |= _PATHS_OF_TABLES if is_hmc else _PATH_LENGTHS
    if kernel is not None:
        if is_minibatch(kernel) and not is_minibatch(options["kernel"]):
            options |= _MINIBATCH
        if is_minibatch(options["kernel"]) and not is_minibatch(kernel):
            options |= _WHOLE_DATA
        options |= _OF_KERNEL.get(kernel, {})
        options["kernel"] = kernel
    parts = {}
    for part in (LikelihoodOptions, SamplingOptions):
        names = {field.name for field in dataclasses.fields(part)} & set(options)
        parts[part] = part(**{name: options[name] for name in names})
    return SampleRecipe(
        DataOptions(data=data), parts[LikelihoodOptions], parts[SamplingOptions]
    )


def sampled_priors() -> tuple[str, ...]:
    """What `ornstein sample --prior` takes."""
    return typing.get_args(typing.get_type_hints(SamplingOptions)["prior"])


def chains_at(recipe: Recipe) -> dict[str, Any]:
    """Options of chains that start where such a run ended: those of its network.

    Args:
        recipe: of what was trained.

    Returns:
        by name, for an ensemble the number of chains among them; none for what chains
        cannot start from.
    """
    model, network = recipe.model, recipe.network.network
    own: dict[str, Any] = {"width": model.width, "activation": model.activation}
    is_known = network in typing.get_args(SampledNetwork)
    if model.model not in ("ensemble", "map", "deterministic") or not is_known:
        return {}
    if model.model == "ensemble":
        own["num_chains"] = recipe.weights.num_members
    if network == WHITENED:
        parts = vars(model) | vars(recipe.solver)
        own |= {name: parts[name] for name in OF_WHITENED if name != "start_scale"}
        own["start_scale"] = model.prior_scale
    elif network == "mlp" and model.model == "map":
        if recipe.weights.prior in sampled_priors():
            own["prior"] = recipe.weights.prior
            own["prior_scale"] = recipe.weights.weight_scale
    return own | {"network": network}
