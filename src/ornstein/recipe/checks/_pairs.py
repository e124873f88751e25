"""Options that do not go together."""

from ..._sentence import Option, OptionError, does_nothing
from .._recipe import Recipe
from ..models import (
    DRIVEN_GRADIENTS,
    MODELS,
    ODE_SOLVERS,
    STANDARD_NORMAL,
    WHITENED,
    check_sides,
    network_kind,
)


def check_family(recipe: Recipe) -> None:
    """Refuse a model that is none yet."""
    if recipe.model.model not in MODELS:
        raise OptionError(
            "{model} {} is chosen once the data are read: give `hand_over` the recipe "
            "and the data, and `prepare` what it returns.",
            recipe.model.model,
        )


def check_depth(recipe: Recipe) -> None:
    """Refuse a network that solves an equation over depth where none can be."""
    family, name = MODELS[recipe.model.model], recipe.network.network
    if "network" not in family.options or not network_kind(name).has_depth:
        return
    if family.posthoc is not None:
        raise OptionError(
            "{model} {} is made of a network of layers, and {network} {} solves an "
            "equation over depth: use {model} deterministic, ensemble or mean-field.",
            recipe.model.model,
            name,
        )
    if not family.takes_depth:
        raise OptionError(
            "{model} {} puts noise on the inputs of each layer, and the layers of "
            "{network} {} are met at every step of a solve: use {model} "
            "deterministic, ensemble or mean-field.",
            recipe.model.model,
            name,
        )


def check_pairs(recipe: Recipe) -> None:
    """Refuse choices of which each is right by itself."""
    _check_roughness(recipe)
    _check_parts(recipe)
    if recipe.model.model == "sdebnn":
        _check_estimator(recipe)
    if "network" in MODELS[recipe.model.model].options:
        _check_image_size(recipe)
        _check_solver(recipe)
        _check_norm(recipe)
    if recipe.model.model == "mean-field":
        _check_weight_noise(recipe)
        _check_random_weights(recipe)
    has_prior = "weight_scale" in MODELS[recipe.model.model].options
    if has_prior and recipe.network.network in STANDARD_NORMAL:
        check_standard_prior(
            recipe.network.network,
            (recipe.weights.prior, recipe.weights.weight_scale),
            "weight_scale",
        )
    _check_posthoc(recipe)
    _check_ivon(recipe)


def _check_image_size(recipe: Recipe) -> None:
    """Before photographs are read, which takes a minute."""
    size, name = recipe.data.image_size, recipe.network.network
    if size is not None and size >= 1:
        check_sides(name, (size, size), recipe.data.data, are_own=True)


def _check_posthoc(recipe: Recipe) -> None:
    """Refuse what would be found out once training is over."""
    model, likelihood = recipe.model.model, recipe.likelihood.likelihood
    has_curvature = ("auto", "gaussian", "categorical", "bernoulli")
    if model == "laplace" and likelihood not in has_curvature:
        raise OptionError(
            "{model} laplace needs a loss whose curvature is positive and the same for "
            "all targets, and that of {likelihood} {} has none: use {likelihood} "
            "gaussian, or {model} ensemble.",
            likelihood,
        )
    has_norm = "norm" in network_kind(recipe.network.network).options
    if model == "swag" and has_norm and recipe.network.norm == "batch":
        raise OptionError(
            "{model} swag would need batch statistics for each draw of the weights of "
            "{}: give {norm} frn or {norm} none.",
            recipe.network.network,
        )


def _check_roughness(recipe: Recipe) -> None:
    options = recipe.training
    if options.roughness_order != 1 and options.regularise_dynamics == 0:
        raise OptionError(
            "{roughness_order} says which roughness {regularise_dynamics} weighs, and "
            "that is 0: add {regularise_dynamics} 0.01, or leave it out."
        )


def _check_parts(recipe: Recipe) -> None:
    options = recipe.training
    if options.draw_per_part and options.accumulate == 1:
        raise OptionError(
            "{draw_per_part} gives each part of a batch its own draw, and {accumulate} "
            "1 leaves it whole: give {accumulate} 4, or leave it out."
        )


def _check_estimator(recipe: Recipe) -> None:
    options = recipe.solver
    is_adaptive = (options.rtol, options.atol) != (None, None)
    if is_adaptive and options.estimator != "kl":
        raise OptionError(
            "{estimator} {} does not go with adaptive steps, whose path KL is an "
            "integral without a Brownian sum: leave {rtol} and {atol} out, or use "
            "{estimator} kl.",
            options.estimator,
        )


def check_standard_prior(
    network: str, prior: tuple[str, float], scale_option: str
) -> None:
    """Refuse another prior than N(0, 1) over numbers that are made for it.

    Args:
        network: whose numbers they are.
        prior: its kind and its standard deviation.
        scale_option: whose value that is.
    """
    kind, scale = prior
    if prior != ("gaussian", 1.0):
        raise OptionError(
            "{network} {} has numbers that are N(0, 1) a priori, and {prior} {} "
            "with {} {:g} is another prior: give {prior} gaussian and {} 1.",
            network,
            kind,
            Option(scale_option),
            scale,
            Option(scale_option),
        )


def _check_solver(recipe: Recipe) -> None:
    name = recipe.network.network
    if not network_kind(name).has_depth:
        return
    if recipe.solver.solver not in ODE_SOLVERS:
        why = "follows noise that is given" if name == WHITENED else "has none"
        raise OptionError(
            "{solver} {} is for equations with noise, and {network} {} {}: give one of "
            "{}.",
            recipe.solver.solver,
            name,
            why,
            ", ".join(ODE_SOLVERS),
        )
    if name == WHITENED and recipe.solver.gradient not in DRIVEN_GRADIENTS:
        raise OptionError(
            "{gradient} {} is not for {network} {}, whose path is given: use "
            "{gradient} checkpointed, which needs as little memory.",
            recipe.solver.gradient,
            name,
        )


def _check_norm(recipe: Recipe) -> None:
    if recipe.model.model != "ensemble" or recipe.network.norm != "batch":
        return
    network = recipe.network.network
    if "norm" in network_kind(network).options:
        raise OptionError(
            "{model} ensemble has one set of batch statistics and each {} in it needs "
            "its own: give {norm} frn or {norm} none.",
            network,
        )


def _check_weight_noise(recipe: Recipe) -> None:
    estimator, noise = recipe.solver.estimator, recipe.weights.weight_noise
    name = recipe.network.network
    if estimator == "stl" and noise != "plain":
        raise OptionError(
            "{estimator} stl needs the draw of the weights that the likelihood meets: "
            "give {weight_noise} plain, not {}.",
            noise,
        )
    if network_kind(name).has_depth and noise != "plain":
        raise OptionError(
            "{network} {} meets the same weights at every step of a solve, which "
            "{weight_noise} {} would draw anew by layer or row: give {weight_noise} "
            "plain.",
            name,
            noise,
        )


def _check_random_weights(recipe: Recipe) -> None:
    name, which = recipe.network.network, recipe.weights.random_weights
    if which == "all":
        return
    if name != WHITENED:
        raise OptionError(
            "{random_weights} {} is for weights that move through depth, and those of "
            "{network} {} do not: give {network} sdebnn, or leave {random_weights} "
            "out.",
            which,
            name,
        )
    if recipe.training.optimiser == "ivon":
        raise OptionError(
            "{random_weights} {} has points, which go to their mode, and {optimiser} "
            "ivon trains points without a prior: give {optimiser} adam.",
            which,
        )


def _check_ivon(recipe: Recipe) -> None:
    options, default = recipe.training, Recipe()
    if options.optimiser != "ivon":
        for name in ("empirical_bayes", "init_hessian", "hessian_decay"):
            if getattr(options, name) != getattr(default.training, name):
                raise does_nothing(name, "optimiser", options.optimiser)
        return
    if recipe.model.model != "mean-field":
        raise OptionError(
            "{optimiser} ivon moves the means and scales of independent normal "
            "weights, which {model} {} does not have: give {model} mean-field, or "
            "{optimiser} adam.",
            recipe.model.model,
        )
    if recipe.weights.prior not in ("gaussian", "fan-in"):
        raise OptionError(
            "{optimiser} ivon takes the prior in closed form, and {prior} {} is not "
            "normal: give {prior} gaussian or {prior} fan-in.",
            recipe.weights.prior,
        )
    if options.kl_warmup > 0 or options.kl_weight <= 0:
        raise OptionError(
            "{optimiser} ivon has the KL in closed form, at one weight above 0 in "
            "every step, got {kl_weight} {} and {kl_warmup} {}: leave them out.",
            options.kl_weight,
            options.kl_warmup,
        )
    if options.importance_weighted:
        raise OptionError(
            "{optimiser} ivon climbs the bound of independent draws: leave "
            "{importance_weighted} out."
        )
    for part in ("weights", "solver", "training"):
        ours, theirs = getattr(recipe, part), getattr(default, part)
        for name in ("init_scale", "estimator", "weight_decay"):
            if hasattr(ours, name) and getattr(ours, name) != getattr(theirs, name):
                raise does_nothing(name, "optimiser", "ivon")
