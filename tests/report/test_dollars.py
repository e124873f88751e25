"""Texts of the user's in figures."""

from matplotlib.figure import Figure

from ornstein.report import save_figure


def test_dollars_are_no_mathematics(tmp_path):
    """Catches (seen) a run that ends in a parser's message when its figures are drawn,
    as its file is called `price_$_vs_$_usd.csv`."""
    figure = Figure()
    axes = figure.subplots()
    axes.set_title("price_$_vs_$_usd.csv")
    axes.plot([0, 1], [0, 1], label="$_5$")
    axes.legend()
    assert save_figure(tmp_path / "a.png", figure).stat().st_size > 1000
