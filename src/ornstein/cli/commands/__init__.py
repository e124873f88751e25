"""The commands: each a dataclass of its options, with `run` and `json`."""

from ._compare import Compare as Compare
from ._evaluate import Evaluate as Evaluate
from ._export import Export as Export
from ._info import Info as Info
from ._predict import Predict as Predict
from ._prune import Prune as Prune
from ._report import Report as Report
from ._reproduce import Reproduce as Reproduce
from ._sample import Sample as Sample
from ._train import Train as Train
