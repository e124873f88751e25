"""The options of a run, part by part."""

import dataclasses
import math
from typing import Literal

from ._names import (
    ActivationName,
    CurvatureName,
    EstimatorName,
    GradientName,
    LikelihoodName,
    MixtureKLName,
    ModelName,
    NormName,
    OptimiserName,
    PriorName,
    RandomWeightsName,
    ScheduleName,
    SolverName,
    StartName,
    StemName,
    TimeLayerName,
    WeightNoiseName,
)


@dataclasses.dataclass(frozen=True)
class DataOptions:
    """What is learned from.

    Attributes:
        data: a name that `ornstein info` lists, uci/NAME, a .csv, .parquet or .npz
            file, or a folder of images by class. A table holds sequences if --time
            names a column.
        data_dir: the folder of downloaded sets; ORNSTEIN_DATA by default.
        target: column or columns to predict, for tables.
        task: what the target of your own file is; seen from the target by default.
        features: columns to learn from, for tables; by default all others but texts
            that are names, and whole numbers that are ids.
        drop: columns to leave out, for tables.
        id_column: the column that names the rows, for tables; predictions repeat it.
        separator: between cells of a .csv; seen from its header by default.
        test: another table, whose rows are the test.
        image_size: sides of your own images in pixels; by default all are of one size.
        image_fit: crop cuts the longer side's ends off, pad puts black by the other.
        stream: leave training rows on disk and read them as they are needed: of a
            .parquet or .npz file, a folder of them, or of images, larger than memory.
        shuffle_buffer: with --stream: rows that are shuffled among each other (all
            images are, so many at once in memory); by default as many as 32 MB hold.
        split: which of the numbered splits of uci/NAME.
        validation_fraction: of the training rows, held out for choosing and stopping.
        train_rows: learn from the first ones alone.
        test_rows: test on the first ones alone; of rows sorted by class, as a folder's
            are, on some of each.
        image_augmentation: shift, crop and flip training images as keeps their class.
    """

    data: str = "digits"
    data_dir: str | None = None
    target: tuple[str, ...] = ()
    task: Literal["classification", "regression"] | None = None
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    id_column: str | None = None
    separator: str | None = None
    test: str | None = None
    image_size: int | None = None
    image_fit: Literal["crop", "pad"] = "crop"
    stream: bool = False
    shuffle_buffer: int | None = None
    split: int = 0
    validation_fraction: float = 0.0
    train_rows: int | None = None
    test_rows: int | None = None
    image_augmentation: bool = False


@dataclasses.dataclass(frozen=True)
class ModelOptions:
    """The random function.

    Attributes:
        model: the family; options of another family than this are refused. chains is
            what `ornstein sample` does by default; auto, for tables, is chains for up
            to 10,000 training rows and an ensemble for more. Both take options of the
            data, of the likelihood and the seed.
        width: hidden widths of f_h, such as 16-16; for images its channels, such as 32.
            Of others: of networks mlp, hierarchical, odenet, hyper-odenet, sdebnn.
        blocks: solves at each scale of images, such as 2-2-2.
        readout: hidden widths of the readout of images, or none.
        space_to_depth: halve images into channels before the first block.
        stem: patches whitens squares of 2 by 2 pixels: --width channels of each.
        normalised: f_h normalises each image before its convolutions, strided ones
            double channels between scales, and the readout is pooled and normalised.
        augment: zero features (channels) appended to the input.
        activation: of f_h, of the network mlp, or of the latent models' networks.
        time_layer: how f_h's layers depend on depth.
        sigma: diffusion of the weights, in units of their prior scale. Of latent-sde
            with --latent-noise fixed or learned (where it starts): that of z.
        prior_scale: standard deviation of w0 a priori, in units of 1/sqrt(fan-in).
        absolute_sigma: take sigma and prior-scale as they are, not in those units.
        rate: of the Ornstein-Uhlenbeck prior; 0 is Brownian motion. Of latent-sde with
            --latent-prior ou or linear (where it starts): per unit of the model's time.
        reverts_to_start: the prior reverts to w0 rather than to 0.
        start: whether w0 is Gaussian with its own KL, or a point at no cost.
        start_width: q(w0)'s standard deviation at first, in units of the prior's.
        drift_widths: hidden widths of the drift network; of the latent models, of the
            prior's and the posterior's.
        drift_scale: multiplies the drift network's output, in units of sigma; for the
            network hyper-odenet of 1/sqrt(fan-in).
        num_inducing: pseudo-inputs that the drift network sees; 0 is the paper's drift.
        random_layers: of f_h, counted from 1, whose weights are random, such as 4 or
            1-4; the other weights are points, constant in depth.
        noise_window: depths between which weights have noise, such as 0-0.4.
        path_per_row: each row of a training batch has its own path of the weights.
        path_modes: of the network sdebnn: modes of each weight's path (1, 2, 4 or 8),
            which any step of the solver can meet; by default the path's increments over
            the steps of dt, which coarser steps can.
        point_scale: of the network sdebnn: standard deviation a priori of what does not
            move, such as the readout, in units of 1/sqrt(fan-in).
    """

    model: ModelName = "sdebnn"
    width: str = "16-16"
    blocks: str = "1"
    readout: str = "none"
    space_to_depth: bool = False
    stem: StemName = "none"
    normalised: bool = False
    augment: int = 2
    activation: ActivationName = "tanh"
    time_layer: TimeLayerName = "concat"
    sigma: float = 0.2
    prior_scale: float = 2.0
    absolute_sigma: bool = False
    rate: float = 1.0
    reverts_to_start: bool = False
    start: StartName = "gaussian"
    start_width: float = 0.02
    drift_widths: str = "64-64"
    drift_scale: float = 1.0
    num_inducing: int = 0
    random_layers: str = "all"
    noise_window: str = "0-1"
    path_per_row: bool = False
    path_modes: int | None = None
    point_scale: float = 1.0


@dataclasses.dataclass(frozen=True)
class NetworkOptions:
    """The plain network inside every family but sdebnn.

    Attributes:
        network: mlp (of flattened inputs); hierarchical, an mlp beside a linear map,
            each layer of which learns how wide its weights are, all its numbers N(0, 1)
            a priori; odenet, with the sdebnn's f_h, hyper-odenet, whose weights follow
            an equation too, and sdebnn, whose weights' noise is among its parameters,
            all N(0, 1) a priori; for images lenet, alexnet, vgg16, resnet-DEPTH (20,
            32, 44, 56, 110 for small ones, 18, 34, 50 for large ones) or
            wide-resnet-DEPTH-WIDTH, such as wide-resnet-28-10.
        network_width: multiplies channels and features: lenet, alexnet, vgg16, resnet.
        norm: of vgg16, resnet and wide-resnet: batch normalisation, filter response
            normalisation, or none (residual ones then start by Fixup).
        pretrained: start from weights of torchvision's layout, for alexnet, vgg16,
            resnet-18, -34 and -50: a safetensors file, or the hub's OWNER/NAME.
        pretrained_head: also from its last layer, whose classes must be the data's.
    """

    network: str = "mlp"
    network_width: float = 1.0
    norm: NormName = "batch"
    pretrained: str | None = None
    pretrained_head: bool = True


@dataclasses.dataclass(frozen=True)
class ImplicitOptions:
    """The noise on the nodes of implicit.

    Attributes:
        num_components: of the mixture.
        node_prior_scale: standard deviation of each node's multiplier a priori.
        init_spread: standard deviation of the components' means at first.
        bias_noise: also multiply the biases.
        mixture_kl: the KL of the components' mean, as in the paper, or an unbiased
            estimate of the mixture's own, with which the loss is a bound.
    """

    num_components: int = 4
    node_prior_scale: float = 0.3
    init_spread: float = 0.5
    bias_noise: bool = False
    mixture_kl: MixtureKLName = "mean"


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
            (local), or a draw's signs flipped by row (flipout). odenet, hyper-odenet
            and sdebnn take plain.
        random_weights: of network sdebnn, all, or the weights' path through depth
            alone: its start and the readout are points, which go to their mode.
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
    random_weights: RandomWeightsName = "all"
    dropout: float = 0.1
    input_dropout: float = 0.0
    num_members: int = 5


@dataclasses.dataclass(frozen=True)
class PosthocOptions:
    """What is made of a network once it is trained: for laplace and swag.

    Attributes:
        curvature: which weights laplace makes random: all together (full, up to 6,500
            of them), all by themselves (diagonal), or those of the last layer together;
            auto is full for numbers and up to 2,000 weights, last-layer for classes or
            more, and diagonal where a last layer has more than 6,500.
        linearised: of laplace: predict with the network linearised at its weights,
            whose posterior it is; otherwise with drawn weights.
        swag_epochs: of swag: passes of SGD at a constant rate after training; the
            weights at the end of each are an iterate.
        swag_rate: of swag: that rate, on which the posterior's width depends; of
            numbers it is one for squared errors, and times the noise's variance where
            that is below 1.
    """

    curvature: CurvatureName = "auto"
    linearised: bool = True
    swag_epochs: int = 20
    swag_rate: float = 0.01


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
        solver: of the differential equation.
        dt: the step; it divides the depth, which is 1.
        rtol: relative tolerance: adaptive steps instead of dt.
        atol: absolute tolerance of adaptive steps.
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
        steps: of the optimiser, instead of epochs: rounded up to whole passes.
        batch_size: examples in a step.
        learning_rate: at its peak. Of ivon the weights'; a learned scale of the
            likelihood then moves by Adam at a tenth of it. Of muon the matrices', four
            times adam's; all else moves by Adam at a quarter of it.
        noise_learning_rate: of the nodes' distribution; --learning-rate by default,
            with muon a quarter of it.
        optimiser: adam; muon, whose steps of matrices and kernels are orthogonal;
            SGD with Nesterov momentum of 0.9; or ivon, natural gradients of mean-field
            under a gaussian or fan-in prior.
        init_hessian: of ivon: a first guess at the curvature of an example's loss,
            which sets the standard deviations of the weights at first.
        hessian_decay: of ivon: of the running mean of that curvature, which forgets in
            1 / (1 - this) steps where the rate is at its peak; by default in a
            twentieth of the run, and at least 10 steps. A mean of few steps is noise
            where weights are many, as in a network of images.
        empirical_bayes: of ivon: fit the prior's scale to the data once an epoch; with
            --prior fan-in that of each array of weights.
        weight_decay: stands in for the prior of models without one. With adam and
            muon AdamW's, of matrices and kernels; with nesterov a gradient of all
            weights and biases, which SWAG's SGD then has, too. Beside a prior it
            shrinks weights (of mean-field their means) further than that does, to what
            is no mode and no optimum of a bound.
        schedule: what the learning rate does after its peak. linear falls from half of
            the run to nine tenths, to a hundredth; the nodes' rate then stays.
        kl_weight: 1 is the bound on the evidence.
        kl_warmup: fraction of the steps over which the KL weight rises from 0.
        num_draws: draws of the function in each step.
        importance_weighted: the tighter bound of several draws instead of their mean;
            with --estimator full and --num-draws above 1 alone, and where rows share
            their draws with --batch-size all of them.
        ema: decay of a running mean of the weights, which is then tested.
        clip: largest norm of the gradient.
        accumulate: parts that each batch is cut into, for less memory.
        draw_per_part: each part meets its own draw, for a gradient with less noise.
        rematerialise: recompute in the backward pass instead of storing.
        regularise_dynamics: nats per example for each unit of the hidden units'
            roughness over depth, so that fewer steps solve them.
        roughness_order: the derivative over depth whose square is that roughness; 2
            for the networks odenet and hyper-odenet alone.
        on_nonfinite: stop at a batch that is no number, or skip up to ten in a row.
        patience: validations without progress, after --kl-warmup, before it stops and
            returns the best epoch since; there is one after each epoch, with --steps
            after about 500 steps.
        test_draws: functions averaged over in tests and predictions.
        seed: of everything random.
    """

    epochs: int | None = 100
    steps: int | None = None
    batch_size: int = 128
    learning_rate: float = 1e-3
    noise_learning_rate: float | None = None
    optimiser: OptimiserName = "adam"
    init_hessian: float = 1.0
    hessian_decay: float | None = None
    empirical_bayes: bool = False
    weight_decay: float = 0.0
    schedule: ScheduleName = "cosine"
    kl_weight: float = 1.0
    kl_warmup: float = 0.0
    num_draws: int = 1
    importance_weighted: bool = False
    ema: float | None = None
    clip: float = 10.0
    accumulate: int = 1
    draw_per_part: bool = False
    rematerialise: bool = False
    regularise_dynamics: float = 0.0
    roughness_order: Literal[1, 2] = 1
    on_nonfinite: Literal["stop", "skip"] = "stop"
    patience: int | None = None
    test_draws: int = 32
    seed: int = 0

    def num_epochs(self, num_data: int) -> int:
        """Passes over so many rows: `epochs`, or those that hold `steps`."""
        if self.steps is None:
            assert self.epochs is not None  # `check_ranges`
            return self.epochs
        return math.ceil(self.steps / self.steps_per_epoch(num_data))

    def steps_per_epoch(self, num_data: int) -> int:
        """Whole batches in one pass over so many rows."""
        return num_data // min(self.batch_size, num_data)
