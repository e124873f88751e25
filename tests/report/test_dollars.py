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
    axes.set_yscale("log")
    assert save_figure(tmp_path / "a.png", figure).stat().st_size > 1000
    figure.canvas.draw()
    (label,) = [t for t in axes.get_yticklabels() if t.get_text().endswith("10^{0}}$")]
    assert label.get_parse_math()  # (seen) a label that says so
