"""Other libraries' objects from ours."""

from ._arviz import to_arviz as to_arviz
