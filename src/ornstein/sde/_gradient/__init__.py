from ._backprop import Backprop as Backprop
from ._backsolve import Backsolve as Backsolve
from ._base import (
    AbstractGradient as AbstractGradient,
    Outputs as Outputs,
    Solve as Solve,
    integrate as integrate,
)
from ._checkpointed import Checkpointed as Checkpointed
from ._reversible import Reversible as Reversible
