"""Rows that stay on disk: their order, and how they are read ahead of the steps."""

from ._ahead import Ahead as Ahead
from ._base import AbstractShards as AbstractShards
from ._order import Part as Part
from ._streamed import Streamed as Streamed
