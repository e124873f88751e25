"""Li, Wong, Chen & Duvenaud (2020): latent SDEs for sequences."""

from ._gbm import LATENT_GBM as LATENT_GBM
from ._lorenz import LORENZ as LORENZ
from ._mocap import MOCAP as MOCAP
from ._mocap_tempos import MOCAP_TEMPOS as MOCAP_TEMPOS
from ._toy import LATENT_TOY as LATENT_TOY
