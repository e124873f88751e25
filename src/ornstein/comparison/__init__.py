"""Methods side by side on the user's own table: `compare`."""

from ._baselines import BASELINES as BASELINES
from ._compare import compare as compare
from ._comparison import (
    Comparison as Comparison,
    MethodScores as MethodScores,
)
