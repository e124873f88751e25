"""The infinitely deep Bayesian neural network of Xu et al. (2022)."""

import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from ..._types import Array, ArrayLike, Float, PRNGKeyArray, PyTree
from ...network import mean_report, merge_reports
from ...nn import MLP, Augment, Concat, MakeTimeLayer, TimeMLP, tanh
from ...sde import KL, AbstractPathKL, Fixed, ReversibleHeun
from .._base import (
    WEIGHTS,
    AbstractRandomFunction,
    Draw,
    draw_key,
    label_tree,
    no_local_kl,
)
from .._noise_scale import median_ratio
from .._posterior_parts import PosteriorParts
from .._softplus import softplus
from ._block_equation import summarise
from ._hidden_units import DepthState
from ._image_stack import Readout, check_depths, check_sizes, image_keys, image_stack
from ._integrator import Integrator
from ._put_back import held_of_start, silence, start_at_prior
from ._sde_block import SDEBlock
from ._weight_drift import drop_drift
from ._weight_prior import WeightPrior


class SDEBNN(AbstractRandomFunction):
    r"""A network whose weights follow a stochastic differential equation over depth.

    A draw is one path of the weights, which serves the whole batch (with
    `is_path_per_row`, in training, each row has its own). Hidden units are
    differentiable in depth, weights are not. $\mathrm{KL}(q \| p)$ is that of the
    paths and of $w_0$, summed over blocks. The readout is a point estimate.

    A point $w_0$ (`start_width=None`) costs nothing in the bound, and can carry the fit
    while the path stays at its prior: look at its KL, and what zeroing $NN_\phi$ costs.

    Attributes:
        layers: solves (`SDEBlock`) and fixed maps between them.
        readout: from hidden units to a likelihood's parameters.
        inducing: M pseudo-inputs Z, in the shape of the data, or `None`.
        is_path_per_row: whether rows of a training batch have paths of their own.

    References:
        Xu, Chen, Li and Duvenaud (2022), "Infinitely Deep Bayesian Neural Networks with
        Stochastic Differential Equations", AISTATS.
    """

    layers: tuple[SDEBlock | Callable[[Array], Array], ...]
    readout: Callable[[Array], Array]
    inducing: Array | None
    is_path_per_row: bool = eqx.field(static=True, default=False)
    num_strata: int = eqx.field(static=True, default=1)
    num_members: int = eqx.field(static=True, default=1)

    @staticmethod
    def for_vectors(
        in_size: int,
        out_size: int,
        *,
        width_sizes: Sequence[int] = (16, 16),
        activation: Callable[[Array], Array] = tanh,
        time: MakeTimeLayer = Concat,
        augment: int = 2,
        prior: WeightPrior | None = None,
        start_width: float | None = 0.02,
        drift_widths: Sequence[int] = (64, 64),
        drift_scale: float = 1.0,
        num_inducing: int = 8,
        estimator: AbstractPathKL | None = None,
        integrator: Integrator | None = None,
        is_path_per_row: bool = False,
        where: Callable[[Any], PyTree] | None = None,
        key: PRNGKeyArray,
    ) -> "SDEBNN":
        """For rows of numbers, standardised.

        Args:
            in_size: features.
            out_size: the likelihood's parameters.
            width_sizes: hidden widths of f_h.
            activation: of f_h.
            time: how f_h's layers depend on depth.
            augment: zeros appended to the input (Dupont et al., 2019). A function of
                one number without any is monotonic.
            prior: over the weights; `WeightPrior()`.
            start_width: q(w₀)'s standard deviation at first in units of its prior's;
                `None` for a point w₀.
            drift_widths: hidden widths of NN_φ.
            drift_scale: multiplies NN_φ's output.
            num_inducing: inducing inputs M; 0 for the paper's own drift.
            estimator: of the path KL; `KL()`.
            integrator: how to solve; 20 steps of Euler-Maruyama.
            is_path_per_row: see the class.
            where: f_h to the subtree (or a tuple of them) that is random, such as
                `lambda f_h: f_h.layers[-1]`; all of it by default.
            key: randomness of the initial parameters.
        """
        check_sizes(in_size=in_size, out_size=out_size)
        dyn_key, block_key, read_key, z_key = jr.split(key, 4)
        size = in_size + augment
        dynamics = TimeMLP(
            size, width_sizes, activation=activation, time=time, key=dyn_key
        )
        inducing = _inducing(num_inducing, (in_size,), key=z_key)
        block = SDEBlock.make(
            dynamics,
            prior=WeightPrior() if prior is None else prior,
            start_width=start_width,
            width_sizes=tuple(drift_widths),
            drift_scale=drift_scale,
            summary_size=num_inducing * size,
            integrator=Integrator() if integrator is None else integrator,
            estimator=KL() if estimator is None else estimator,
            where=where,
            key=block_key,
        )
        readout = Readout(MLP(size, out_size, (), key=read_key))
        return SDEBNN((Augment(augment), block), readout, inducing, is_path_per_row)

    @staticmethod
    def for_images(
        example_shape: Sequence[int],
        num_outputs: int,
        *,
        blocks: Sequence[int] = (1,),
        width: int = 32,
        activation: Callable[[Array], Array] = tanh,
        time: MakeTimeLayer = Concat,
        augment: int = 2,
        space_to_depth_first: bool = False,
        stem: Callable[[Array], Array] | None = None,
        is_normalised: bool = False,
        readout_widths: Sequence[int] = (),
        prior: WeightPrior | None = None,
        start_width: float | None = None,
        drift_widths: Sequence[int] = (2, 128, 2),
        drift_scale: float = 1.0,
        num_inducing: int = 0,
        estimator: AbstractPathKL | None = None,
        integrator: Integrator | None = None,
        is_path_per_row: bool = False,
        where: Callable[[Any], PyTree] | None = None,
        key: PRNGKeyArray,
    ) -> "SDEBNN":
        """For images (height, width, channels), standardised.

        Args:
            example_shape: of one image.
            num_outputs: classes.
            blocks: solves at each scale, invertible downsampling between them; (2, 2,
                2) in the paper's CIFAR-10 model.
            width: channels inside f_h.
            activation: of f_h.
            time: how f_h's layers depend on depth.
            augment: zero channels appended to the input.
            space_to_depth_first: downsample once before the first block too.
            stem: a first layer in its place, such as `nn.PatchStem`: a point.
            is_normalised: `NormedConvBlock`s, strided convolutions that double the
                channels (and `width`), and a pooled, normalised readout.
            readout_widths: hidden widths of the readout ((1024,) in the reference).
            prior: over the weights; `WeightPrior()`.
            start_width: q(w₀)'s standard deviation at first in units of its prior's;
                `None` for a point w₀, which predicts better on images: see the class.
            drift_widths: hidden widths of NN_φ.
            drift_scale: multiplies NN_φ's output.
            num_inducing: inducing images M, pooled to 2 by 2 for NN_φ.
            estimator: of the path KL; `KL()`.
            integrator: how to solve; eight steps of reversible Heun.
            is_path_per_row: see the class.
            where: f_h to the subtree (or a tuple of them) that is random, such as
                `lambda f_h: f_h.layers[-1]`; all of it by default.
            key: randomness of the initial parameters.

        Raises:
            ValueError: sizes that cannot be halved as often as `blocks` asks.
        """
        read_key, z_key, *block_keys = image_keys(blocks, key=key)
        inducing = _inducing(num_inducing, tuple(example_shape), key=z_key)
        if integrator is None:
            integrator = Integrator(ReversibleHeun(), Fixed(dt=0.125))

        def make_block(
            dynamics: eqx.Module, shape: tuple[int, ...], key: PRNGKeyArray
        ) -> SDEBlock:
            summary = 0
            if num_inducing:
                if shape[1] % 2 or shape[2] % 2:
                    raise ValueError(
                        f"Inducing images are pooled to 2 by 2, and hidden units of "
                        f"{shape[1]} by {shape[2]} cannot be: leave out "
                        "`num_inducing`, or use images whose sides are even at each "
                        "scale."
                    )
                summary = summarise(jnp.zeros(shape), jnp.float32).size
            return SDEBlock.make(
                dynamics,
                prior=WeightPrior() if prior is None else prior,
                start_width=start_width,
                width_sizes=tuple(drift_widths),
                drift_scale=drift_scale,
                summary_size=num_inducing * summary,
                integrator=integrator,
                estimator=KL() if estimator is None else estimator,
                where=where,
                key=key,
            )

        layers, readout = image_stack(
            make_block,
            example_shape,
            num_outputs,
            blocks=blocks,
            width=width,
            activation=activation,
            time=time,
            augment=augment,
            space_to_depth_first=space_to_depth_first,
            stem=stem,
            is_normalised=is_normalised,
            readout_widths=readout_widths,
            read_key=read_key,
            block_keys=block_keys,
        )
        return SDEBNN(layers, readout, inducing, is_path_per_row)

    def __call__(
        self,
        x: Float[Array, "batch ..."],
        *,
        key: PRNGKeyArray,
        index: int | Array | None = None,
        state: eqx.nn.State | None = None,
    ) -> Draw:
        """Apply one path of the weights to a batch (in training: see the class)."""
        if self.is_path_per_row and index is None:
            keys = jr.split(key, x.shape[0])
            rows = jax.vmap(lambda row, k: self._draw(row[None], key=k))(x, keys)
            output = rows.output[:, 0]
            kl, terms = jax.tree.map(jnp.mean, (rows.kl, rows.terms))
            report = mean_report(rows.report)
            return Draw(
                output=output,
                kl=kl,
                local_kl=no_local_kl(x),
                state=state,
                terms=terms,
                report=report,
            )
        draw = self._draw(x, key=draw_key(key, index))
        return dataclasses.replace(draw, state=state)

    def _draw(self, x: Array, *, key: PRNGKeyArray) -> Draw:
        h, z = x, self.inducing
        kl = kl_path = kl_initial = jnp.zeros(())
        reports = []
        for layer, layer_key in zip(
            self.layers, jr.split(key, len(self.layers)), strict=True
        ):
            if not isinstance(layer, SDEBlock):
                h, z = layer(h), None if z is None else layer(z)
                continue
            out = layer(h, z, key=layer_key)
            h, z = out.states.hidden, out.states.inducing
            kl = kl + out.kl
            kl_path, kl_initial = kl_path + out.kl_path, kl_initial + out.kl_initial
            reports.append(out.report)
        terms = {"kl_path": kl_path, "kl_initial": kl_initial}
        return Draw(
            output=self.readout(h),
            kl=kl,
            local_kl=no_local_kl(x),
            terms=terms,
            report=merge_reports(reports),
            log_ratio="shared" if self._has_log_ratio() else None,
        )

    def _has_log_ratio(self) -> bool:
        blocks = [layer for layer in self.layers if isinstance(layer, SDEBlock)]
        return all(block.estimator.is_log_ratio for block in blocks)

    def trajectory(
        self,
        x: Float[Array, "batch ..."],
        ts: Float[ArrayLike, " times"],
        *,
        key: PRNGKeyArray,
        index: int | Array | None = None,
    ) -> list[DepthState]:
        """What the weights and hidden units of each block do over depth.

        Args:
            x: the batch.
            ts: depths, multiples of the step; the first is 0, the last is 1.
            key: randomness; with `index`, that of the same draw as `__call__`'s.
            index: which draw.

        Returns:
            The states of each block; depth is the leading axis.

        Raises:
            ValueError: depths that do not begin at 0 and end at 1.
        """
        check_depths(ts)
        h, z, found = x, self.inducing, []
        keys = jr.split(draw_key(key, index), len(self.layers))
        for layer, layer_key in zip(self.layers, keys, strict=True):
            if not isinstance(layer, SDEBlock):
                h, z = layer(h), None if z is None else layer(z)
                continue
            found.append(layer.trajectory(h, z, ts, key=layer_key))
            last = jax.tree.map(lambda a: a[-1], found[-1])
            h, z = last.hidden, last.inducing
        return found

    def member(self, number: int | Array) -> AbstractRandomFunction:
        """Itself: it is trained alone."""
        del number
        return self

    def posterior_parts(self) -> PosteriorParts:
        """Paths, scales in units of the prior's, and the function without its drift."""
        noisy = self._noisy_blocks()
        parts = ("start",) if any(block.rho is not None for block in noisy) else ()
        return PosteriorParts(
            is_random=bool(noisy),
            kl_record="kl_path" if noisy else None,
            noise_scales=self._noise_scales,
            has_noisy_path=bool(noisy),
            starts_at_points=all(block.rho is None for block in noisy),
            parts=(*parts, "path") if noisy else (),
            at_prior=self._at_prior,
            held=lambda model: [held_of_start(a) for a in model._noisy_blocks()],
            without_noise=(lambda: self.over_blocks(silence)) if noisy else None,
            ablations={"drift": self.over_blocks(drop_drift)},
        )

    def _at_prior(self, parts: Collection[str], key: PRNGKeyArray) -> "SDEBNN":
        del key
        model = self.over_blocks(start_at_prior) if "start" in parts else self
        return model.over_blocks(drop_drift) if "path" in parts else model

    def over_blocks(self, change: Callable[[SDEBlock], SDEBlock]) -> "SDEBNN":
        """The model with each of its solves changed.

        Args:
            change: from one solve to another.
        """
        is_block = lambda layer: isinstance(layer, SDEBlock)
        layers = tuple(change(a) if is_block(a) else a for a in self.layers)  # pyright: ignore
        return eqx.tree_at(lambda model: model.layers, self, layers)

    def _noisy_blocks(self) -> list[SDEBlock]:
        blocks = (layer for layer in self.layers if isinstance(layer, SDEBlock))
        return [block for block in blocks if block.is_noisy]

    def _noise_scales(self) -> dict[str, float]:
        noisy = self._noisy_blocks()
        if not noisy:
            return {}
        sigmas = [median_ratio(b.process.scale, b.initial_scale) for b in noisy]
        starts = [
            median_ratio(jax.tree.map(softplus, block.rho), block.initial_scale)
            for block in noisy
            if block.rho is not None
        ]
        found = {"sigma_over_prior": min(sigmas)}
        return found | ({"start_over_prior": min(starts)} if starts else {})

    def labels(self) -> PyTree[str]:
        """Everything is trained but the prior and the drift's units."""

        def frozen(model: SDEBNN) -> PyTree:
            blocks = [layer for layer in model.layers if isinstance(layer, SDEBlock)]
            return [block.frozen() for block in blocks]

        return label_tree(self, WEIGHTS, frozen=frozen)


def _inducing(
    num_inducing: int, shape: tuple[int, ...], *, key: PRNGKeyArray
) -> Array | None:
    if num_inducing < 0:
        raise ValueError(f"`num_inducing` must be at least 0, got {num_inducing}.")
    if num_inducing == 0:
        return None
    if shape == (1,):
        # Spread over the range of a standardised input: random ones would clump.
        return jnp.linspace(-1.2, 1.2, num_inducing)[:, None]
    return jr.normal(key, (num_inducing, *shape))
