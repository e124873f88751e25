"""Networks by their papers' names."""

from ._alexnet import AlexNet as AlexNet
from ._fixup import FixupLayer as FixupLayer, fixup as fixup
from ._hierarchical import HierarchicalMLP as HierarchicalMLP
from ._lenet import LeNet as LeNet
from ._networks import (
    MLP as MLP,
    ConvBlock as ConvBlock,
    MakeTimeLayer as MakeTimeLayer,
    NormedConvBlock as NormedConvBlock,
    TimeLayer as TimeLayer,
    TimeMLP as TimeMLP,
)
from ._patch_stem import PatchStem as PatchStem
from ._resnet import ResNet as ResNet
from ._vgg import (
    CIFAR_HEAD as CIFAR_HEAD,
    IMAGENET_HEAD as IMAGENET_HEAD,
    VGG16 as VGG16,
    VGGHead as VGGHead,
)
from ._wide_resnet import WideResNet as WideResNet
