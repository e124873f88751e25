"""One pair of axes and what is drawn between them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..page import Html, Ids, Number, joined, tag
from ._axis import Axis

_WIDTH, _HEIGHT = 460, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 24, 10, 44
_ASIDE, _PER_DIGIT = 30, 7
_LEGEND_ROW, _PER_LETTER, _SAMPLE = 19, 7.2, 26
_MOST_POINTS = 400
NUM_STYLES = 6


class Chart:
    """Lines, bars and dots between two axes.

    Styles differ by colour and by dashes, and are named in a legend.

    Args:
        ids: of the page.
        title: what it shows, for those who do not see it.
        description: what there is to see in it, likewise.
        x: the axis below.
        y: the axis on the left.
    """

    def __init__(self, ids: Ids, title: str, description: str, *, x: Axis, y: Axis):
        self._ids = ids
        self._title, self._description = title, description
        self._x, self._y = x, y
        self._marks: list[Html] = []
        self._legend: list[tuple[str, Html]] = []
        longest = max((len(y.written(value)) for value in y.marked), default=0)
        self._left = max(_LEFT, round(_ASIDE + _PER_DIGIT * longest))

    def line(
        self,
        xs: ArrayLike,
        ys: ArrayLike,
        *,
        style: int = 0,
        label: str | None = None,
        is_thin: bool = False,
    ) -> None:
        """A line, broken where a number is missing.

        Args:
            xs: along the axis below.
            ys: along the axis on the left.
            style: its colour and dashes.
            label: its name in the legend.
            is_thin: for many of them; without dashes.
        """
        xs, ys = _thinned(np.asarray(xs, np.float64), np.asarray(ys, np.float64))
        dash = "" if is_thin else f" d{style % NUM_STYLES}"
        kind = f"line{' thin' if is_thin else ''} s{style % NUM_STYLES}{dash}"
        path = self._path(xs, ys)
        if path:
            self._marks.append(tag("path", d=path, class_=kind))
        alone = _is_alone(np.isfinite(ys))
        if alone.any():  # a line of one point is none
            self.dots(xs[alone], ys[alone], style=style)
        if label is not None:
            sample = tag("line", x1=0, x2=20, y1=-4, y2=-4, class_=kind)
            self._legend.append((label, sample))

    def guide(self, xs: ArrayLike, ys: ArrayLike, *, label: str | None = None) -> None:
        """A line to compare with.

        Args:
            xs: along the axis below.
            ys: along the axis on the left.
            label: its name in the legend.
        """
        path = self._path(np.asarray(xs, np.float64), np.asarray(ys, np.float64))
        self._marks.append(tag("path", d=path, class_="guide"))
        if label is not None:
            sample = tag("line", x1=0, x2=20, y1=-4, y2=-4, class_="guide")
            self._legend.append((label, sample))

    def band(
        self, xs: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, style: int = 0
    ) -> None:
        """What lies between two lines.

        Args:
            xs: along the axis below.
            lower: line.
            upper: line.
            style: its colour.
        """
        xs = np.asarray(xs, np.float64)
        _, upper = _thinned(xs, np.asarray(upper, np.float64))
        xs, lower = _thinned(xs, np.asarray(lower, np.float64))
        there = np.isfinite(lower) & np.isfinite(upper)
        if there.sum() < 2:
            return
        xs, lower, upper = xs[there], lower[there], upper[there]
        ends = np.concatenate([xs, xs[::-1]]), np.concatenate([lower, upper[::-1]])
        path = f"{self._path(*ends)}Z"
        self._marks.append(tag("path", d=path, class_=f"band f{style % NUM_STYLES}"))

    def dots(
        self,
        xs: ArrayLike,
        ys: ArrayLike,
        *,
        errors: ArrayLike | None = None,
        style: int = 0,
        label: str | None = None,
        radius: Number = 3.0,
    ) -> None:
        """Points, with bars of one standard error if they have them.

        Args:
            xs: along the axis below.
            ys: along the axis on the left.
            errors: of `ys`.
            style: their colour.
            label: their name in the legend.
            radius: in pixels.
        """
        xs, ys = np.asarray(xs, np.float64), np.asarray(ys, np.float64)
        colour = style % NUM_STYLES
        if errors is not None:
            errors = np.asarray(errors, np.float64)
            for x, y, error in zip(xs, ys, errors, strict=True):
                path = self._path(np.array([x, x]), np.array([y - error, y + error]))
                if path:
                    self._marks.append(tag("path", d=path, class_=f"error s{colour}"))
        for x, y in zip(*self._places(xs, ys), strict=True):
            if np.isfinite(x) and np.isfinite(y):
                self._marks.append(_dot(x, y, radius, colour))
        if label is not None:
            self._legend.append((label, _dot(10.0, -4.0, radius, colour)))

    def bars(
        self, edges: ArrayLike, heights: ArrayLike, *, style: int = 0, gap: float = 1.0
    ) -> None:
        """Bars that stand on the axis.

        Args:
            edges: of the bars, one more than they are.
            heights: of the bars.
            style: their colour.
            gap: between them, in pixels.
        """
        edges, heights = np.asarray(edges, float), np.asarray(heights, float)
        xs, tops = self._places(edges, np.append(heights, 0.0))
        bottom = self._places(np.zeros(1), np.array([max(self._y.low, 0.0)]))[1][0]
        for left, right, top in zip(xs[:-1], xs[1:], tops[:-1], strict=True):
            if np.isfinite(top) and bottom - top > 0:
                self._marks.append(
                    tag(
                        "rect",
                        x=_shown(left + gap / 2),
                        y=_shown(top),
                        width=_shown(max(right - left - gap, 0.5)),
                        height=_shown(bottom - top),
                        class_=f"bar f{style % NUM_STYLES} s{style % NUM_STYLES}",
                    )
                )

    def html(self) -> Html:
        """The picture."""
        legend, rows = self._drawn_legend()
        above = _LEGEND_ROW * rows
        height = _HEIGHT + above
        clip, title, description = (
            self._ids(f"{self._title} {part}") for part in ("clip", "title", "text")
        )
        inside = tag(
            "rect",
            x=self._left,
            y=_TOP - 4,
            width=_WIDTH - self._left - _RIGHT + 4,
            height=_HEIGHT - _TOP - _BOTTOM + 8,
        )
        plot = tag(
            "g",
            *self._axes(),
            tag("g", *self._marks, clip_path=f"url(#{clip})"),
            transform=f"translate(0 {above})",
        )
        return tag(
            "svg",
            tag("title", self._title, id=title),
            tag("desc", self._description, id=description),
            tag("defs", tag("clipPath", inside, id=clip)),
            legend,
            plot,
            viewBox=f"0 0 {_WIDTH} {height}",
            role="img",
            aria_labelledby=title,
            aria_describedby=description,
        )

    def _places(self, xs: np.ndarray, ys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        left = self._left + self._x.share(xs) * (_WIDTH - self._left - _RIGHT)
        top = _HEIGHT - _BOTTOM - self._y.share(ys) * (_HEIGHT - _TOP - _BOTTOM)
        return left, top

    def _path(self, xs: np.ndarray, ys: np.ndarray) -> str:
        parts, is_down = [], False
        for x, y in zip(*self._places(xs, ys), strict=True):
            if not (np.isfinite(x) and np.isfinite(y)):
                is_down = False
                continue
            parts.append(f"{'L' if is_down else 'M'}{_shown(x)} {_shown(y)}")
            is_down = True
        return "".join(parts)

    def _axes(self) -> list[Html]:
        right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
        drawn = []
        for value in self._y.marked:
            y = self._places(np.zeros(1), np.array([value]))[1][0]
            line = {"x1": self._left, "x2": right, "y1": _shown(y), "y2": _shown(y)}
            drawn.append(tag("line", class_="grid", **line))
            text = {"x": self._left - 7, "y": _shown(y + 4), "text_anchor": "end"}
            drawn.append(tag("text", self._y.written(value), class_="tick", **text))
        for value in self._x.marked:
            x = self._places(np.array([value]), np.zeros(1))[0][0]
            line = {"x1": _shown(x), "x2": _shown(x), "y1": bottom, "y2": bottom + 4}
            drawn.append(tag("line", class_="frame", **line))
            text = {"x": _shown(x), "y": bottom + 18, "text_anchor": "middle"}
            drawn.append(tag("text", self._x.written(value), class_="tick", **text))
        base = {"x1": self._left, "x2": right, "y1": bottom, "y2": bottom}
        middle = (_TOP + bottom) / 2
        drawn.append(tag("line", class_="frame", **base))
        below = {
            "x": (self._left + right) / 2,
            "y": _HEIGHT - 8,
            "text_anchor": "middle",
        }
        drawn.append(tag("text", self._x.label, **below))
        aside = {"x": 0, "y": 0, "text_anchor": "middle"}
        turned = f"translate(13 {_shown(middle)}) rotate(-90)"
        drawn.append(tag("text", self._y.label, transform=turned, **aside))
        return drawn

    def _drawn_legend(self) -> tuple[Html, int]:
        if not self._legend:
            return Html(""), 0
        x, row, drawn = float(self._left), 0, []
        for label, sample in self._legend:
            width = _SAMPLE + _PER_LETTER * len(label) + 14
            if x > self._left and x + width > _WIDTH:
                x, row = float(self._left), row + 1
            place = f"translate({_shown(x)} {14 + row * _LEGEND_ROW})"
            text = tag("text", label, x=_SAMPLE, y=0)
            drawn.append(tag("g", sample, text, transform=place))
            x += width
        return joined(drawn), row + 1


def _dot(x: Number, y: Number, radius: Number, colour: int) -> Html:
    place = {"cx": _shown(x), "cy": _shown(y), "r": _shown(radius)}
    return tag("circle", class_=f"f{colour}", **place)


def _thinned(xs: np.ndarray, ys: np.ndarray) -> Sequence[np.ndarray]:
    """No more points than can be seen, the first and the last among them."""
    if len(xs) <= _MOST_POINTS:
        return xs, ys
    kept = np.unique(np.linspace(0, len(xs) - 1, _MOST_POINTS).round().astype(int))
    return xs[kept], ys[kept]


def _is_alone(is_there: np.ndarray) -> np.ndarray:
    """Which points have no neighbour that a line could lead to."""
    around = np.pad(is_there, 1)
    return is_there & ~around[:-2] & ~around[2:]


def _shown(value: Number) -> str:
    return f"{float(value):.1f}".removesuffix(".0")
