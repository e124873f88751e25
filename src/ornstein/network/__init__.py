"""Plain networks: how they are called, and what random functions see of them."""

from ._alone import check_alone as check_alone
from ._call import call_network as call_network
from ._module import (
    Network as Network,
    as_network as as_network,
    check_parameters as check_parameters,
    parameter_masks as parameter_masks,
    parameter_parts as parameter_parts,
    split_where as split_where,
    unwrapped as unwrapped,
    without_batch_state as without_batch_state,
)
from ._report import (
    SolveReport as SolveReport,
    mean_report as mean_report,
    merge_reports as merge_reports,
)
from ._rows import (
    PROBE_ROWS as PROBE_ROWS,
    NetworkOutput as NetworkOutput,
)
from ._state import (
    batch_states as batch_states,
    has_batch_state as has_batch_state,
    in_inference as in_inference,
    initial_state as initial_state,
    with_named_state as with_named_state,
)
