"""Xu, Chen, Li & Duvenaud (2022): infinitely deep Bayesian neural networks."""
