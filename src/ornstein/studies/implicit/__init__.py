"""Trinh, Kaski & Heinonen (2020): implicit Bayesian neural networks."""

from ._benchmark import IBNN_BENCHMARK as IBNN_BENCHMARK
from ._components import IBNN_COMPONENTS as IBNN_COMPONENTS
from ._fig1 import IBNN_FIG1 as IBNN_FIG1
from ._fig2 import IBNN_FIG2 as IBNN_FIG2
from ._fig3 import IBNN_FIG3 as IBNN_FIG3
from ._fig4 import IBNN_FIG4 as IBNN_FIG4
from ._fig7 import IBNN_FIG7 as IBNN_FIG7
from ._fig8 import IBNN_FIG8 as IBNN_FIG8
from ._pretrained import IBNN_PRETRAINED as IBNN_PRETRAINED
from ._table1 import IBNN_TABLE1 as IBNN_TABLE1
