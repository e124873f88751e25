"""Bayesian deep learning by stochastic dynamics, on JAX."""
