"""The studies by name, each read from its file when it is asked for."""

from collections.abc import Iterator, Mapping
from importlib import import_module

from ._experiment import Experiment

PLACES = {
    "fig1": "sdebnn._fig1:FIG1",
    "fig2": "sdebnn._fig2:FIG2",
    "fig3": "sdebnn._fig3:FIG3",
    "fig4": "sdebnn._fig4:FIG4",
    "fig5": "sdebnn._fig5:FIG5",
    "fig6": "sdebnn._fig6:FIG6",
    "fig7": "sdebnn._fig7:FIG7",
    "fig8": "sdebnn._fig8:FIG8",
    "fig9": "sdebnn._fig7:FIG9",
    "fig11": "sdebnn._fig11:FIG11",
    "fig12": "sdebnn._fig11:FIG12",
    "stl-training": "sdebnn._stl_training:STL_TRAINING",
    "cost": "sdebnn._cost:COST",
    "inducing": "sdebnn._inducing:INDUCING",
    "inducing-images": "sdebnn._inducing_images:INDUCING_IMAGES",
    "posterior": "sdebnn._posterior:POSTERIOR",
    "exactness": "samplers._exactness:EXACTNESS",
    "sghmc-distributions": "samplers._sghmc_distributions:SGHMC_DISTRIBUTIONS",
    "csgd-ellipses": "samplers._csgd_ellipses:CSGD_ELLIPSES",
    "bbb-pruning": "samplers._bbb_pruning:BBB_PRUNING",
    "mnist-confirmation": "samplers._mnist_confirmation:MNIST_CONFIRMATION",
    "mnist-rows": "samplers._mnist_rows:MNIST_ROWS",
    "mnist-samplers": "samplers._mnist_samplers:MNIST_SAMPLERS",
    "bandit": "samplers._bandit:BANDIT",
    "uci": "samplers._uci:UCI",
    "uci-as-typed": "samplers._uci_as_typed:UCI_AS_TYPED",
    "agreement": "samplers._agreement:AGREEMENT",
    "ibnn-fig1": "implicit._fig1:IBNN_FIG1",
    "ibnn-fig2": "implicit._fig2:IBNN_FIG2",
    "ibnn-fig3": "implicit._fig3:IBNN_FIG3",
    "ibnn-fig4": "implicit._fig4:IBNN_FIG4",
    "ibnn-fig7": "implicit._fig7:IBNN_FIG7",
    "ibnn-fig8": "implicit._fig8:IBNN_FIG8",
    "ibnn-table1": "implicit._table1:IBNN_TABLE1",
    "ibnn-benchmark": "implicit._benchmark:IBNN_BENCHMARK",
    "ibnn-components": "implicit._components:IBNN_COMPONENTS",
    "ibnn-pretrained": "implicit._pretrained:IBNN_PRETRAINED",
    "latent-gbm": "latent._gbm:LATENT_GBM",
    "latent-toy": "latent._toy:LATENT_TOY",
    "lorenz": "latent._lorenz:LORENZ",
    "mocap": "latent._mocap:MOCAP",
    "mocap-tempos": "latent._mocap_tempos:MOCAP_TEMPOS",
    "table1": "sdebnn._table1:TABLE1",
}
"""Of each that `ornstein reproduce NAME` runs: its file below here, and its name.

A new one needs a line here, and nothing else.
"""


class Registry(Mapping[str, Experiment]):
    """Studies by name. Names cost nothing; a study is imported when it is taken.

    Args:
        places: of each name, `"room._file:NAME"` below `ornstein.studies`.

    Attributes:
        taken: those that were asked for.
    """

    def __init__(self, places: dict[str, str]):
        self._places = places
        self.taken: dict[str, Experiment] = {}

    def __getitem__(self, name: str) -> Experiment:
        """The study of a name."""
        if name not in self.taken:
            module, _, constant = self._places[name].partition(":")
            found = getattr(import_module(f"{__package__}.{module}"), constant)
            self.taken[name] = found
        return self.taken[name]

    def __iter__(self) -> Iterator[str]:
        """Names, in the order of the list."""
        return iter(self._places)

    def __len__(self) -> int:
        """How many."""
        return len(self._places)


EXPERIMENTS = Registry(PLACES)
"""What `ornstein reproduce NAME` runs."""
