"""The figures and the report of a run."""

from ._figures import save_figure as save_figure, write_figures as write_figures
from ._run_record import (
    RunRecord as RunRecord,
    keep_rows as keep_rows,
    read_run as read_run,
)
from ._series import series_figure as series_figure
from ._write_report import html_report as html_report, write_report as write_report
from .rows import (
    ChainRecord as ChainRecord,
    Example as Example,
    JudgedRows as JudgedRows,
    KeptRows as KeptRows,
    load_rows as load_rows,
    save_rows as save_rows,
)
