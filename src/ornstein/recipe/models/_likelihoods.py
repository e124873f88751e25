"""Likelihoods by their names in a recipe."""

from collections.abc import Callable

from ..._sentence import OptionError
from ...data import Data
from ...likelihood import (
    AbstractLikelihood,
    AbstractLocationScaleLikelihood,
    Bernoulli,
    Categorical,
    Cauchy,
    Gaussian,
    Laplace,
    OverTime,
    StudentT,
)
from ..options import LikelihoodOptions

LIKELIHOODS: dict[str, Callable[[LikelihoodOptions], AbstractLikelihood]] = {
    "categorical": lambda o: Categorical(),
    "bernoulli": lambda o: Bernoulli(),
    "gaussian": lambda o: Gaussian(o.scale, learn_scale=o.learn_scale),
    "laplace": lambda o: Laplace(o.scale, learn_scale=o.learn_scale),
    "cauchy": lambda o: Cauchy(o.scale, learn_scale=o.learn_scale),
    "student-t": lambda o: StudentT(o.df, o.scale, learn_scale=o.learn_scale),
}


def build_likelihood(options: LikelihoodOptions, data: Data) -> AbstractLikelihood:
    """The likelihood, whose targets the data must have; of sequences, over time."""
    name = options.likelihood
    if name == "auto":
        name = "categorical" if data.task == "classification" else "gaussian"
    likelihood = LIKELIHOODS[name](options)
    if data.task == "series":
        if not isinstance(likelihood, AbstractLocationScaleLikelihood):
            raise OptionError(
                "{likelihood} {} is of classes, and {} holds sequences of numbers: "
                "give gaussian, laplace, cauchy or student-t.",
                name,
                data.name,
            )
        likelihood = OverTime(likelihood)
    likelihood.check_targets(data.train.in_memory().y, data.num_outputs)
    return likelihood
