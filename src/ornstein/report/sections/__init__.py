"""The sections of a report, in their order."""

from ._base import Section as Section, Sheet as Sheet
from ._calibration import calibration as calibration
from ._card import card as card
from ._chains import chains as chains
from ._choice import choice as choice
from ._comparison import comparison as comparison
from ._diagnosis import diagnosis as diagnosis
from ._evaluated import evaluated as evaluated
from ._examples import examples as examples
from ._lead import lead as lead
from ._risk import risk as risk
from ._scores import scores as scores
from ._training import training as training
from ._uncertainty import uncertainty as uncertainty
