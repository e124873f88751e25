"""Xu, Chen, Li & Duvenaud (2022): infinitely deep Bayesian neural networks."""

from ._cost import COST as COST
from ._fig1 import FIG1 as FIG1
from ._fig2 import FIG2 as FIG2
from ._fig3 import FIG3 as FIG3, SameForAll as SameForAll
from ._fig4 import FIG4 as FIG4
from ._fig5 import FIG5 as FIG5
from ._fig6 import FIG6 as FIG6
from ._fig7 import FIG7 as FIG7, FIG9 as FIG9
from ._fig8 import FIG8 as FIG8
from ._fig11 import FIG11 as FIG11, FIG12 as FIG12
from ._inducing import INDUCING as INDUCING
from ._inducing_images import INDUCING_IMAGES as INDUCING_IMAGES
from ._posterior import POSTERIOR as POSTERIOR
from ._stl_training import STL_TRAINING as STL_TRAINING
from ._table1 import TABLE1 as TABLE1
