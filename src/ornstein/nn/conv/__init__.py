"""2-D convolutions that stay fast inside loops, gradients and many-kernel batches."""

from ._choice import (
    conv_form as conv_form,
    num_cores as num_cores,
    processor as processor,
)
from ._conv import (
    ConvCall as ConvCall,
    conv2d as conv2d,
    conv2d_transpose as conv2d_transpose,
    recorded_convs as recorded_convs,
)
from ._forms import forms_of_all as forms_of_all
