"""What a run keeps of its test rows, so that it can be reported without its data."""

from ._chains import ChainRecord as ChainRecord, record_chains as record_chains
from ._example import Example as Example
from ._file import (
    KeptRows as KeptRows,
    load_rows as load_rows,
    rows_path as rows_path,
    save_rows as save_rows,
)
from ._judged import JudgedRows as JudgedRows, judge_rows as judge_rows
