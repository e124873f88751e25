"""Markov chains over a network's parameters, run and kept."""

from ._burn_in import BurnIn as BurnIn
from ._callback import (
    ChainProgress as ChainProgress,
    SamplingCallback as SamplingCallback,
    SamplingPlan as SamplingPlan,
)
from ._chains import Chains as Chains, run_chains as run_chains
from ._convergence import StuckChainError as StuckChainError, is_stuck as is_stuck
from ._file import (
    NoSamplesYetError as NoSamplesYetError,
    load_samples as load_samples,
    origin_of as origin_of,
    save_samples as save_samples,
)
from ._from_disk import why_not_from_disk as why_not_from_disk
from ._members import starts_of_members as starts_of_members
from ._noise_limit import HOT as HOT, NoiseLimit as NoiseLimit, how_hot as how_hot
from ._optimised import optimised_starts as optimised_starts
from ._running import RunningPrediction as RunningPrediction
from ._sample import sample as sample
from ._starts import Starts as Starts
