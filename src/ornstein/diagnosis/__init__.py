"""Whether a posterior is one: `diagnose`."""

from ._base import Diagnosis as Diagnosis, Finding as Finding
from ._diagnose import diagnose as diagnose
