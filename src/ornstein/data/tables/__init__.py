"""Tables of numbers: the user's own, UCI's, and toys."""

from ._archive import archive as archive, read_array as read_array
from ._frame import read_frame as read_frame, read_table as read_table
from ._own_targets import (
    own_labels as own_labels,
    own_targets as own_targets,
    with_targets as with_targets,
)
from ._table import (
    LabelledFrame as LabelledFrame,
    TableOptions as TableOptions,
    check_other as check_other,
    features_of as features_of,
    labelled_frame as labelled_frame,
    labelled_rows as labelled_rows,
    table as table,
)
from ._targets import (
    MOST_CLASSES as MOST_CLASSES,
    class_name as class_name,
    read_target as read_target,
)
from ._toy import TOYS as TOYS, toy as toy
from ._uci import uci as uci
