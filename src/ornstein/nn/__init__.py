"""Layers and networks, plain and time-dependent, and convolutions of our own."""

from ._activations import (
    ACTIVATIONS as ACTIVATIONS,
    Swish as Swish,
    activation_from_name as activation_from_name,
    rbf as rbf,
    tanh as tanh,
)
from ._adapters import (
    ChannelsFirst as ChannelsFirst,
    Flattened as Flattened,
    PerExample as PerExample,
    PerRow as PerRow,
    WholeBatch as WholeBatch,
)
from ._chain import Chain as Chain
from ._initialise import Initialise as Initialise, he_normal as he_normal
from ._layers import (
    AbstractLayer as AbstractLayer,
    Conv2d as Conv2d,
    ConvTranspose2d as ConvTranspose2d,
    Linear as Linear,
)
from ._nodes import (
    Layer as Layer,
    is_layer as is_layer,
    layers_of as layers_of,
    num_inputs as num_inputs,
    num_nodes as num_nodes,
)
from ._norm import (
    BatchNorm as BatchNorm,
    FilterResponseNorm as FilterResponseNorm,
    ThresholdedLinear as ThresholdedLinear,
)
from ._parameters import (
    fan_ins as fan_ins,
    num_parameters as num_parameters,
    scale_parameters as scale_parameters,
)
from ._shapes import (
    Augment as Augment,
    MaxPool as MaxPool,
    adaptive_average_pool as adaptive_average_pool,
    average_pool as average_pool,
    depth_to_space as depth_to_space,
    max_pool as max_pool,
    space_to_depth as space_to_depth,
)
from ._time import (
    TIME_LAYERS as TIME_LAYERS,
    Blend as Blend,
    Concat as Concat,
    ConcatCoord as ConcatCoord,
    ConcatSquash as ConcatSquash,
    Gated as Gated,
    Hyper as Hyper,
    Ignore as Ignore,
    Squash as Squash,
)
from .architectures import (
    CIFAR_HEAD as CIFAR_HEAD,
    IMAGENET_HEAD as IMAGENET_HEAD,
    MLP as MLP,
    VGG16 as VGG16,
    AlexNet as AlexNet,
    ConvBlock as ConvBlock,
    FixupLayer as FixupLayer,
    HierarchicalMLP as HierarchicalMLP,
    LeNet as LeNet,
    MakeTimeLayer as MakeTimeLayer,
    NormedConvBlock as NormedConvBlock,
    PatchStem as PatchStem,
    ResNet as ResNet,
    TimeLayer as TimeLayer,
    TimeMLP as TimeMLP,
    VGGHead as VGGHead,
    WideResNet as WideResNet,
    fixup as fixup,
)
from .conv import (
    conv2d as conv2d,
    conv2d_transpose as conv2d_transpose,
    conv_form as conv_form,
)
