"""Trinh, Kaski & Heinonen (2020): implicit Bayesian neural networks."""
