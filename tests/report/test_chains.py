"""What a report says of chains: of how many samples, and of which energies."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

from ornstein.functions import PosteriorSamples
from ornstein.likelihood import Gaussian
from ornstein.nn import PerExample
from ornstein.report._run_record import RunRecord
from ornstein.report.page import Ids
from ornstein.report.rows import ChainRecord, JudgedRows, KeptRows, record_chains
from ornstein.report.sections import Sheet
from ornstein.report.sections._chains import chains


def page(record: ChainRecord) -> str:
    one, none = np.zeros(1), np.zeros(0)
    rows = JudgedRows("numbers", 1, one, {}, none, {}, {}, ())
    kept = KeptRows(rows, record)
    run = RunRecord(Path("run"), {}, {"kernel": "SGHMC"}, None, [], None, kept, ())
    section = chains(Sheet(run, Ids()))
    assert section is not None
    return str(section.content)


def recorded(num_samples: int, **info: Any) -> ChainRecord:
    """Two chains of a line without slope, whose energies are independent."""
    rng = np.random.default_rng(0)
    shape = (2, num_samples)
    network = PerExample(eqx.nn.Linear(1, 1, key=jax.random.key(0)))
    params, rest = eqx.partition(network, eqx.is_inexact_array)
    draw = lambda a: rng.normal(size=(*shape, *a.shape)).astype("float32")
    positions = (jax.tree.map(draw, params), None)
    info = {"energy": rng.normal(size=shape)} | info
    samples = PosteriorSamples(rest, Gaussian(0.1), positions, info=info)
    return record_chains(samples, np.ones((2, 1), "float32"))


@pytest.mark.parametrize(("num_samples", "is_said"), [(499, False), (1000, True)])
def test_of_how_many_samples_effective_sizes_are(num_samples: int, is_said: bool):
    """Catches (seen) an ESS of every fourth sample, as if it were of all of them."""
    text = page(recorded(num_samples))
    assert ("of one sample in 4, 250 of each chain" in text) == is_said


@pytest.mark.parametrize("has_batches", [False, True])
def test_energies_of_batches_have_no_e_bfmi(has_batches: bool):
    """Catches (seen) an E-BFMI of 2 of the batches' noise, and words on a momentum."""
    info = {"gradient_norm": np.ones((2, 20))} if has_batches else {}
    record = recorded(20, **info)
    assert ("E-BFMI" in record.by_chain) != has_batches
    text = page(record)
    assert ("of position and momentum" in text) != has_batches
    assert ("there is no E-BFMI, which would be of that noise" in text) == has_batches
