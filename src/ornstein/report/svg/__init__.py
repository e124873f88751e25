"""Small pictures as SVG: text stays text, and colours follow the page's."""

from ._axis import Axis as Axis, axis_of as axis_of
from ._chart import Chart as Chart
