"""Bayesian deep learning by stochastic dynamics, on JAX."""

from ._version import __version__ as __version__
