"""The experiments by name."""

from ._bandit import BANDIT
from ._bbb_pruning import BBB_PRUNING
from ._cost import COST
from ._csgd_ellipses import CSGD_ELLIPSES
from ._exactness import EXACTNESS
from ._fig1 import FIG1
from ._fig2 import FIG2
from ._fig3 import FIG3
from ._fig4 import FIG4
from ._fig5 import FIG5
from ._fig6 import FIG6
from ._fig7 import FIG7, FIG9
from ._fig8 import FIG8
from ._fig11 import FIG11, FIG12
from ._ibnn_benchmark import IBNN_BENCHMARK
from ._ibnn_components import IBNN_COMPONENTS
from ._ibnn_fig1 import IBNN_FIG1
from ._ibnn_fig2 import IBNN_FIG2
from ._ibnn_fig3 import IBNN_FIG3
from ._ibnn_fig4 import IBNN_FIG4
from ._ibnn_fig7 import IBNN_FIG7
from ._ibnn_fig8 import IBNN_FIG8
from ._ibnn_pretrained import IBNN_PRETRAINED
from ._ibnn_table1 import IBNN_TABLE1
from ._inducing import INDUCING
from ._inducing_images import INDUCING_IMAGES
from ._latent_gbm import LATENT_GBM
from ._latent_toy import LATENT_TOY
from ._lorenz import LORENZ
from ._mnist_samplers import MNIST_SAMPLERS
from ._mocap import MOCAP
from ._mocap_tempos import MOCAP_TEMPOS
from ._posterior import POSTERIOR
from ._sghmc_distributions import SGHMC_DISTRIBUTIONS
from ._stl_training import STL_TRAINING
from ._study import Experiment
from ._table1 import TABLE1
from ._uci import UCI

EXPERIMENTS: dict[str, Experiment] = {
    "fig1": FIG1,
    "fig2": FIG2,
    "fig3": FIG3,
    "fig4": FIG4,
    "fig5": FIG5,
    "fig6": FIG6,
    "fig7": FIG7,
    "fig8": FIG8,
    "fig9": FIG9,
    "fig11": FIG11,
    "fig12": FIG12,
    "stl-training": STL_TRAINING,
    "cost": COST,
    "inducing": INDUCING,
    "inducing-images": INDUCING_IMAGES,
    "posterior": POSTERIOR,
    "exactness": EXACTNESS,
    "sghmc-distributions": SGHMC_DISTRIBUTIONS,
    "csgd-ellipses": CSGD_ELLIPSES,
    "bbb-pruning": BBB_PRUNING,
    "mnist-samplers": MNIST_SAMPLERS,
    "bandit": BANDIT,
    "uci": UCI,
    "ibnn-fig1": IBNN_FIG1,
    "ibnn-fig2": IBNN_FIG2,
    "ibnn-fig3": IBNN_FIG3,
    "ibnn-fig4": IBNN_FIG4,
    "ibnn-fig7": IBNN_FIG7,
    "ibnn-fig8": IBNN_FIG8,
    "ibnn-table1": IBNN_TABLE1,
    "ibnn-benchmark": IBNN_BENCHMARK,
    "ibnn-components": IBNN_COMPONENTS,
    "ibnn-pretrained": IBNN_PRETRAINED,
    "latent-gbm": LATENT_GBM,
    "latent-toy": LATENT_TOY,
    "lorenz": LORENZ,
    "mocap": MOCAP,
    "mocap-tempos": MOCAP_TEMPOS,
    "table1": TABLE1,
}
"""What `ornstein reproduce NAME` runs."""
