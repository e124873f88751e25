"""Samples of Markov chains as a random function, and whether the chains have met."""

from ._chain_diagnostics import (
    ChainDiagnostics as ChainDiagnostics,
    diagnose_chains as diagnose_chains,
    e_bfmi as e_bfmi,
    ess_bulk as ess_bulk,
    ess_tail as ess_tail,
    is_of_batches as is_of_batches,
    r_hat as r_hat,
    split_r_hat as split_r_hat,
    thinned as thinned,
)
from ._posterior_samples import PosteriorSamples as PosteriorSamples
