"""IVON: natural-gradient variational inference for independent normal weights."""

from collections.abc import Callable
from dataclasses import KW_ONLY

import equinox as eqx
import jax
import optax

from ...functions import AbstractRandomFunction, Ensemble, MeanField, NormalFamily
from ...prior import AbstractPrior, GaussianPrior, normal_leaves
from .._check import check_decay
from .._elbo import ELBO, AbstractObjective
from .._kl_weight import KLWeight, UniformSplit

_TIMES_FORGOTTEN = 20.0
"""How often h would forget in a run at the peak of rho; with a cosine, half of it."""
_MOST_HESSIAN_RATE = 0.1


class IVON(eqx.Module):
    r"""Natural gradients for `MeanField`, in place of those that Adam is given.

    $\mu, \sigma$ of q move by the gradient $\hat g$ and the curvature $\hat h$ of
    $\ell$, the mean loss of an example *without* its KL, at weights drawn from q; prior
    $N(\mu_0, s^2)$ and entropy come in closed form. With N examples, $\lambda = N /
    \beta$ at KL weight $\beta$, and $\delta = 1 / (\lambda s^2)$:

    $\bar g \leftarrow \beta_1 \bar g + (1 - \beta_1) \hat g$,
    $h \leftarrow h + \rho (\hat h - h) + \tfrac12 \rho^2 (\hat h - h)^2 / (h +
    \delta)$,
    $\mu \leftarrow \mu - \alpha \frac{h_0 + \delta}{h + \delta} (\bar g / (1 -
    \beta_1^t) + \delta (\mu - \mu_0))$, $\sigma = 1 / \sqrt{\lambda (h + \delta)}$.

    h estimates the diagonal of $E_q \nabla^2 \ell$. The fixed point is the optimum of
    the bound at KL weight 1; another weight makes a tempered posterior, as with every
    other optimiser. What is trained is a `MeanField`, or an `Ensemble` of them.

    **Departures.** The reference has $\hat h = \hat g (w - \mu) / \sigma^2$ of a draw
    w. Here $\hat h = \sigma^{-1} \partial_\sigma \ell$, which has the same mean
    (Price's theorem), is that very number for `Reparameterised`, and less noisy for
    `LocalReparameterised` and `Flipout`, whose rows have noise of their own. And
    $\rho$, there the constant $1 - \beta_2$, falls with the learning rate where that
    is a number: what one batch says of h counts less and less, and q settles.

    What is trained and is no random weight (parameters outside `where`, a learned scale
    of the likelihood) moves by `points`, at the `learning_rate` of `fit`. `clip_norm`
    shrinks $\hat g$ and $\hat h$ alike. `ema_decay` averages means and scales.

    **The bound and predictions.** On nine tenths of the training rows of split 0 (one
    seed, 8,000 steps), with the network and prior of `reproduce uci`, the bound is 8
    nats on yacht and -627 on concrete; Adam's, whose KL warms up, is -66 and -698. The
    other tenth is predicted no better: 1.28 and -0.22 nats a row against 1.36 and
    -0.17. The q of the better bound gives up weights that Adam's keeps. Where
    predictions count and not the bound, try Adam too. The rate and `init_hessian` were
    chosen on such splits, their test rows seen, and on digits.

    Args:
        learning_rate: $\alpha$ at its peak, which falls as the `schedule` of `fit`
            says; or an optax schedule. Times `init_hessian` it is the part of a Newton
            step that a step takes once h is known.
        momentum: $\beta_1$.
        hessian_decay: $\beta_2$, so that h forgets in $1 / (1 - \beta_2)$ steps; by
            default a twentieth of the run. The noise of h grows with N over the rows of
            a batch, and falls with them.
        init_hessian: $h_0$: it, and not `init_scale`, sets $\sigma$ at first.
        points: the rule of all else that is trained.
        empirical_bayes: once an epoch, set each scale of the prior to the best for the
            q of that moment, $s^2 = \frac1n \sum (\mu - \mu_0)^2 + \sigma^2$ over the
            n weights that share it (`fan_in_prior` has one for each leaf). The bound
            then has a point estimate of the scales in it, and `Fit.notes` says so. The
            scale of weights that the data do not need falls towards 0.

    Raises:
        ValueError: for numbers out of their range.

    References:
        Shen, Daheim, Cong, Nickl, Marconi, Bazan, Yokota, Gurevych, Cremers, Khan &
        Möllenhoff (2024), "Variational Learning is Effective for Large Deep Networks",
        algorithm 1.
    """

    learning_rate: float | optax.Schedule = 0.1
    _: KW_ONLY
    momentum: float = 0.9
    hessian_decay: float | None = None
    init_hessian: float = 1.0
    points: Callable[[optax.Schedule], optax.GradientTransformation] = optax.adam
    empirical_bayes: bool = False

    def __check_init__(self) -> None:
        rate = self.learning_rate
        if not (callable(rate) or isinstance(rate, float | int)):
            raise TypeError(
                f"`IVON.learning_rate` must be a number or an optax schedule, got "
                f"{rate!r}: start from 0.1."
            )
        for name in ("momentum", "init_hessian"):
            if not isinstance(getattr(self, name), float | int):
                raise TypeError(
                    f"`IVON.{name}` must be a number, got {getattr(self, name)!r}."
                )
        if not callable(self.points):
            raise TypeError(
                f"`IVON.points` must be a rule such as `optax.adam`, got "
                f"{self.points!r}."
            )
        if isinstance(rate, float | int) and not rate > 0:
            raise ValueError(
                f"`IVON.learning_rate` must be positive, got {rate}: start from 0.1."
            )
        check_decay("IVON.hessian_decay", self.hessian_decay)
        if not 0 <= self.momentum < 1:
            raise ValueError(
                f"`IVON.momentum` must be at least 0 and below 1, got {self.momentum}: "
                "try 0.9."
            )
        if not self.init_hessian > 0:
            raise ValueError(
                f"`IVON.init_hessian` must be positive, got {self.init_hessian}: it is "
                "a first guess at the curvature of an example's loss, such as 1."
            )

    def check(
        self, model: AbstractRandomFunction, objective: AbstractObjective, kl: KLWeight
    ) -> None:
        """Refuse what has no natural gradient here.

        Args:
            model: to be trained.
            objective: of the run.
            kl: of the run.

        Raises:
            TypeError: for a model without normal weights under a normal prior.
            ValueError: for another objective than the bound, or a KL that counts
                differently from step to step.
        """
        part = model.members if isinstance(model, Ensemble) else model
        name = type(part).__name__
        if not isinstance(part, MeanField):
            name = name if part is model else f"Ensemble` of `{name}"
            raise TypeError(
                f"`IVON` moves the means and scales of independent normal weights, and "
                f"`{name}` has none: give `orn.MeanField(network, prior)`, or another "
                "optimiser, such as `optax.adam`."
            )
        if not isinstance(part.family, NormalFamily):
            raise TypeError(
                f"`IVON` moves the means and scales of normal weights, and "
                f"`{type(part.family).__name__}` has others: leave `family` out, or "
                "give another optimiser, such as `optax.adam`."
            )
        member = model.member(0)
        assert isinstance(member, MeanField)
        if member.has_prior_on_points:
            raise ValueError(
                "`IVON` trains what is not random by its rule for points, without a "
                "prior: leave `has_prior_on_points` out, or give another optimiser, "
                "such as `optax.adam`."
            )
        assert isinstance(member.family, NormalFamily)
        self._check_prior(member.prior, member.family)
        if type(objective) is not ELBO:
            raise ValueError(
                f"`IVON` climbs the bound of independent draws, not "
                f"`{type(objective).__name__}`: use `objective=orn.ELBO()`."
            )
        if kl.weight == 0 or kl.warmup > 0 or not isinstance(kl.split, UniformSplit):
            raise ValueError(
                f"`IVON` has the KL in closed form, at one weight above 0 in every "
                f"step, got {kl}: leave warm-up and split out, as in "
                "`kl=orn.KLWeight(1.0)`."
            )

    def hessian_rate(self, num_steps: int) -> float:
        r"""$\rho$ at its peak.

        Args:
            num_steps: of the run.
        """
        if self.hessian_decay is not None:
            return 1 - self.hessian_decay
        return min(_TIMES_FORGOTTEN / num_steps, _MOST_HESSIAN_RATE)

    def notes(self) -> tuple[str, ...]:
        """What a fit says of its numbers."""
        if not self.empirical_bayes:
            return ()
        return (
            "The prior's scales were fitted to these data (empirical Bayes): the bound "
            "has a point estimate of them in it, at no cost.",
        )

    def _check_prior(self, prior: AbstractPrior, family: NormalFamily) -> None:
        try:
            priors = normal_leaves(prior, family.mean)
        except TypeError as error:
            raise TypeError(f"`IVON` takes the prior in closed form: {error}") from None
        if not self.empirical_bayes:
            return
        is_prior = lambda node: isinstance(node, GaussianPrior)
        for one in jax.tree.leaves(priors, is_leaf=is_prior):
            if one.scale.ndim:
                raise ValueError(
                    f"`IVON(empirical_bayes=True)` fits scales that weights share, "
                    f"and a prior's scale of shape {one.scale.shape} has one for each "
                    "weight: give `GaussianPrior` one number, or use "
                    "`orn.fan_in_prior(network)`."
                )
