"""2-D convolutions that stay fast inside loops, gradients and many-kernel batches."""

from ._conv import conv2d as conv2d, conv2d_transpose as conv2d_transpose
