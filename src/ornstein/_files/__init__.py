"""Foreign files: what they claim is checked before anything is allocated for it."""

from ._atomic import (
    link_atomically as link_atomically,
    naming as naming,
    to_disk as to_disk,
    write_atomically as write_atomically,
)
from ._json import parse_json as parse_json, read_json as read_json
from ._lock import LOCK as LOCK, lock_folder as lock_folder
from ._mat import read_mat as read_mat
from ._npy import (
    check_npy as check_npy,
    npz_shapes as npz_shapes,
    read_npz as read_npz,
)
from ._unreadable import (
    UnreadableError as UnreadableError,
    check_expansion as check_expansion,
    check_fits_memory as check_fits_memory,
    check_folder as check_folder,
    check_regular as check_regular,
    read_bytes as read_bytes,
)
