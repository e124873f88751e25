"""Li, Wong, Chen & Duvenaud (2020): latent SDEs for sequences."""
