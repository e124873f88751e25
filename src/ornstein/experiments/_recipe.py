"""Every choice of a run, as JSON: what the command line fills in and a run keeps."""

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any, Literal

ModelName = Literal["sdebnn", "mean-field", "mc-dropout", "ensemble", "deterministic"]
LikelihoodName = Literal[
    "auto", "categorical", "bernoulli", "gaussian", "laplace", "cauchy", "student-t"
]
EstimatorName = Literal["kl", "full", "stl"]
PriorName = Literal["gaussian", "fan-in", "laplace", "scale-mixture"]
WeightNoiseName = Literal["plain", "local", "flipout"]
SolverName = Literal[
    "euler",
    "euler-heun",
    "heun",
    "midpoint",
    "milstein",
    "reversible-heun",
    "shark",
    "sra1",
    "stratonovich-milstein",
]
GradientName = Literal["backprop", "checkpointed", "reversible", "backsolve"]
ActivationName = Literal["elu", "mish", "rbf", "relu", "softplus", "swish", "tanh"]
TimeLayerName = Literal[
    "blend",
    "concat",
    "concat-coord",
    "concat-squash",
    "gated",
    "hyper",
    "ignore",
    "squash",
]


@dataclasses.dataclass(frozen=True)
class DataOptions:
    """What is learned from.

    Attributes:
        data: a name that `ornstein info` lists, uci/NAME, a .csv, .parquet or .npz
            file, or a folder of images by class.
        data_dir: the folder of downloaded sets; ORNSTEIN_DATA by default.
        target: column or columns to predict, for tables.
        task: what the target of your own file is; seen from the target by default.
        split: which of the numbered splits of uci/NAME.
        validation_fraction: of the training rows, held out for choosing and stopping.
        image_augmentation: shift, crop and flip training images as keeps their class.
    """

    data: str = "digits"
    data_dir: str | None = None
    target: tuple[str, ...] = ()
    task: Literal["classification", "regression"] | None = None
    split: int = 0
    validation_fraction: float = 0.0
    image_augmentation: bool = False


@dataclasses.dataclass(frozen=True)
class ModelOptions:
    """The random function.

    Attributes:
        model: the family; options of another family than this are refused.
        width: hidden widths of f_h, such as 16-16; for images its channels, such as 32.
            Of the other families: hidden widths of the network of flattened inputs.
        blocks: solves at each scale of images, such as 2-2-2.
        readout: hidden widths of the readout of images, or none.
        space_to_depth: halve images into channels before the first block.
        augment: zero features (channels) appended to the input.
        activation: of f_h, or of the network.
        time_layer: how f_h's layers depend on depth.
        sigma: diffusion of the weights, in units of their prior scale.
        prior_scale: standard deviation of w0 a priori, in units of 1/sqrt(fan-in).
        absolute_sigma: take sigma and prior-scale as they are, not in those units.
        rate: of the Ornstein-Uhlenbeck prior; 0 is Brownian motion.
        reverts_to_start: the prior reverts to w0 rather than to 0.
        start: whether w0 is Gaussian with its own KL, or a point at no cost.
        start_width: q(w0)'s standard deviation at first, in units of the prior's.
        drift_widths: hidden widths of the drift network.
        drift_scale: multiplies the drift network's output.
        num_inducing: pseudo-inputs that the drift network sees; 0 is the paper's drift.
        path_per_row: each row of a training batch has its own path of the weights.
    """

    model: ModelName = "sdebnn"
    width: str = "16-16"
    blocks: str = "1"
    readout: str = "none"
    space_to_depth: bool = False
    augment: int = 2
    activation: ActivationName = "tanh"
    time_layer: TimeLayerName = "concat"
    sigma: float = 0.2
    prior_scale: float = 2.0
    absolute_sigma: bool = False
    rate: float = 1.0
    reverts_to_start: bool = False
    start: Literal["gaussian", "point"] = "gaussian"
    start_width: float = 0.02
    drift_widths: str = "64-64"
    drift_scale: float = 1.0
    num_inducing: int = 0
    path_per_row: bool = False


@dataclasses.dataclass(frozen=True)
class WeightOptions:
    """How a network becomes random: for mean-field, mc-dropout and ensemble.

    Attributes:
        prior: of every weight by itself; fan-in is a gaussian in units of
            1/sqrt(fan-in).
        weight_scale: of the prior: standard deviation of a gaussian, of the wide one of
            a scale-mixture.
        narrow_scale: standard deviation of the narrow one of a scale-mixture.
        mixture: the wide one's share of a scale-mixture.
        init_scale: standard deviations of the weights at first.
        weight_noise: one draw for a batch (plain), noise on each layer's outputs
            (local), or a draw's signs flipped by row (flipout).
        dropout: fraction of its inputs that each layer but the first loses.
        input_dropout: fraction of the inputs that the first layer loses.
        num_members: networks of the ensemble.
    """

    prior: PriorName = "gaussian"
    weight_scale: float = 1.0
    narrow_scale: float = 0.0025
    mixture: float = 0.5
    init_scale: float = 0.01
    weight_noise: WeightNoiseName = "local"
    dropout: float = 0.1
    input_dropout: float = 0.0
    num_members: int = 5


@dataclasses.dataclass(frozen=True)
class LikelihoodOptions:
    """What an output says about a target.

    Attributes:
        likelihood: auto is categorical for classes and gaussian for numbers.
        scale: of the noise, in units of the (standardised) targets.
        learn_scale: train the scale with the network.
        df: degrees of freedom of student-t.
    """

    likelihood: LikelihoodName = "auto"
    scale: float = 0.1
    learn_scale: bool = False
    df: float = 4.0


@dataclasses.dataclass(frozen=True)
class SolverOptions:
    """How the equations are solved.

    Attributes:
        solver: of the stochastic differential equation.
        dt: the step; it divides the depth, which is 1.
        rtol: relative tolerance: adaptive steps instead of dt.
        atol: absolute tolerance: likewise.
        gradient: how the solve is differentiated.
        estimator: of the KL: of the path, or of mean-field weights.
    """

    solver: SolverName = "midpoint"
    dt: float = 0.1
    rtol: float | None = None
    atol: float | None = None
    gradient: GradientName = "backprop"
    estimator: EstimatorName = "kl"


@dataclasses.dataclass(frozen=True)
class TrainingOptions:
    """How it is trained and tested.

    Attributes:
        epochs: passes over the training data.
        batch_size: examples in a step.
        learning_rate: of Adam, at its peak.
        weight_decay: of AdamW, for matrices and kernels: stands in for the prior of
            models without one.
        schedule: what the learning rate does after its peak.
        kl_weight: 1 is the bound on the evidence.
        kl_warmup: fraction of the steps over which the KL weight rises from 0.
        num_draws: draws of the function in each step.
        importance_weighted: the tighter bound of several draws instead of their mean.
        ema: decay of a running mean of the weights, which is then tested.
        clip: largest norm of the gradient.
        accumulate: parts that each batch is cut into, for less memory.
        rematerialise: recompute in the backward pass instead of storing.
        patience: epochs without progress on the validation rows before it stops.
        test_draws: functions averaged over in tests and predictions.
        seed: of everything random.
    """

    epochs: int = 100
    batch_size: int = 128
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    schedule: Literal["cosine", "constant"] = "cosine"
    kl_weight: float = 1.0
    kl_warmup: float = 0.0
    num_draws: int = 1
    importance_weighted: bool = False
    ema: float | None = None
    clip: float = 10.0
    accumulate: int = 1
    rematerialise: bool = False
    patience: int | None = None
    test_draws: int = 32
    seed: int = 0


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Every choice of a run.

    Attributes:
        data: what is learned from.
        model: the random function.
        weights: how a plain network becomes random.
        likelihood: what an output says about a target.
        solver: how the equations are solved.
        training: how it is trained and tested.
    """

    data: DataOptions = dataclasses.field(default_factory=DataOptions)
    model: ModelOptions = dataclasses.field(default_factory=ModelOptions)
    weights: WeightOptions = dataclasses.field(default_factory=WeightOptions)
    likelihood: LikelihoodOptions = dataclasses.field(default_factory=LikelihoodOptions)
    solver: SolverOptions = dataclasses.field(default_factory=SolverOptions)
    training: TrainingOptions = dataclasses.field(default_factory=TrainingOptions)

    def changed(self, **changes: Any) -> "Recipe":
        """The recipe with some options changed, each by its own name.

        Raises:
            ValueError: for a name that no option has.
        """
        parts = {}
        for part in dataclasses.fields(self):
            options = getattr(self, part.name)
            names = {f.name for f in dataclasses.fields(options)} & set(changes)
            own = {name: changes.pop(name) for name in names}
            parts[part.name] = dataclasses.replace(options, **own)
        if changes:
            raise ValueError(
                f"There is no option {sorted(changes)[0]!r}: `ornstein train --help` "
                "lists them."
            )
        return Recipe(**parts)

    def to_json(self) -> dict[str, Any]:
        """As nested JSON objects."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, saved: Any) -> "Recipe":
        """What `to_json` wrote; parts that it does not have keep their defaults.

        Raises:
            ValueError: for something else.
        """
        fields = {f.name: f for f in dataclasses.fields(cls)}
        if not isinstance(saved, Mapping) or not {"data"} <= set(saved) <= set(fields):
            raise ValueError(
                f"A recipe has the parts {', '.join(fields)}, not "
                f"{', '.join(saved) if isinstance(saved, Mapping) else saved!r}: give "
                "the folder that this version of `ornstein train` wrote."
            )
        types = typing.get_type_hints(cls)
        return cls(**{name: read_part(types[name], saved[name]) for name in saved})


def read_part(part: type, saved: Mapping[str, Any]) -> Any:
    """One part of a recipe; options that it does not name keep their defaults."""
    types = typing.get_type_hints(part)
    values = {}
    for name, value in saved.items():
        if name not in types:
            raise ValueError(
                f"There is no option {name!r}: the run is of another version of "
                "ornstein; train it again."
            )
        if typing.get_origin(types[name]) is Literal:
            choices = typing.get_args(types[name])
            if value not in choices:
                raise ValueError(
                    f"`{name}` is {value!r}, but must be one of {', '.join(choices)}."
                )
        values[name] = tuple(value) if isinstance(value, list) else value
    return part(**values)


def sizes(text: str, option: str) -> tuple[int, ...]:
    """The numbers of `2-128-2`; none of `none`.

    Args:
        text: what was given.
        option: its name, for messages.
    """
    if text == "none":
        return ()
    parts = text.split("-")
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ValueError(
            f"--{option} is {text!r}, but must be positive whole numbers joined by "
            "hyphens, such as 2-128-2."
        )
    return tuple(int(part) for part in parts)
