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
)
from ._alexnet import AlexNet as AlexNet
from ._conv import conv2d as conv2d, conv2d_transpose as conv2d_transpose
from ._fixup import FixupLayer as FixupLayer, fixup as fixup
from ._initialise import Initialise as Initialise, he_normal as he_normal
from ._layers import (
    AbstractLayer as AbstractLayer,
    Conv2d as Conv2d,
    ConvTranspose2d as ConvTranspose2d,
    Linear as Linear,
)
from ._lenet import LeNet as LeNet
from ._networks import (
    MLP as MLP,
    ConvBlock as ConvBlock,
    MakeTimeLayer as MakeTimeLayer,
    TimeLayer as TimeLayer,
    TimeMLP as TimeMLP,
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
from ._resnet import ResNet as ResNet
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
from ._vgg import (
    CIFAR_HEAD as CIFAR_HEAD,
    IMAGENET_HEAD as IMAGENET_HEAD,
    VGG16 as VGG16,
    VGGHead as VGGHead,
)
from ._wide_resnet import WideResNet as WideResNet
