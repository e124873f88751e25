"""What programs are said to compute and send, and what networks are said to cost."""

import math
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from benchmarks import scaling
from benchmarks.costs import model
from benchmarks.costs.hlo import Program
from benchmarks.costs.networks import (
    BF16,
    KNOWN,
    Known,
    arithmetic,
    costs,
    parts,
    sizes,
)
from ornstein import nn

# As XLA writes it, shortened: a loop of 3 within one of 5, and a `cond`.
TEXT = (Path(__file__).parent / "step.hlo").read_text(encoding="utf-8")


def test_loops_and_branches_are_multiplied_out():
    """All-reduce: 15 times 500 bytes, twice 3/4 of them. The costlier branch: half of
    3,200 bytes, twice. Permutations: device 1 sends 120 bytes, 3 none to others. Seen
    to fail: a loop that counts once.
    """
    program = Program(TEXT)
    assert program.flops == 16 * 2 * 8 * 2 * 4
    assert program.bytes_by_kind() == {
        "all-reduce": 15 * 500 * 1.5,
        "all-gather": 1600,
        "reduce-scatter": 1600,
        "collective-permute": 160,
    }
    assert program.bytes_a_device() == 15 * 750 + 3200 + 120
    assert program.num_unknown_loops() == 0


def test_devices_that_take_part_are_counted_however_they_are_written():
    """As lists, as a count, transposed, and by the axes of a mesh."""
    written = "replica_groups=mesh['a'=4,'b'=2] {'a'}"
    for other in ("{{0,1,2,3},{4,5,6,7}}", "[2,4]<=[8]", "[2,4]<=[4,2]T(1,0)"):
        assert written in TEXT
        text = TEXT.replace(written, f"replica_groups={other}")
        assert Program(text).bytes_a_device() == Program(TEXT).bytes_a_device()


def test_a_loop_of_unknown_length_counts_once():
    unknown = TEXT.replace(', backend_config={"known_trip_count":{"n":"5"}}', "")
    program = Program(unknown)
    assert program.num_unknown_loops() == 1
    assert program.bytes_by_kind()["all-reduce"] == 3 * 750


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("all-gather(", "all-gather-start(", "compile for CPU"),
        ("replica_groups=[4,2]<=[8]", "of_all", "take part is not read"),
        (" dot(", " convolution(", "products alone"),
    ],
)
def test_what_is_not_read_is_refused(old: str, new: str, match: str):
    """Catches traffic that is left out in silence."""
    with pytest.raises(ValueError, match=match):
        Program(TEXT.replace(old, new)).bytes_a_device()


@pytest.mark.parametrize(
    ("name", "millions", "billions"),
    [("WideResNet-28x10", 36.5, 5.25), ("ResNet-50", 25.6, 4.09)],
)
def test_networks_are_of_the_published_size(
    name: str, millions: float, billions: float
):
    """The papers' and torchvision's tables."""
    found = sizes(KNOWN[name])
    assert found.num_weights / 1e6 == pytest.approx(millions, rel=2e-3)
    assert found.num_products / 1e9 == pytest.approx(billions, rel=2e-3)
    dynamics, rest = parts(KNOWN[name], found)
    repeats = KNOWN[name].repeated
    extra = sum((times - 1) * n for times, n, _ in repeats)
    assert dynamics.num_weights + rest.num_weights + extra == found.num_weights
    assert rest.num_products > 0


def test_repeated_blocks_are_those_of_the_networks():
    """Counted from convolutions as they are traced. Catches other stages, or pixels."""
    of_wide = [
        products
        for one, products in recorded(KNOWN["WideResNet-28x10"])
        if one.num_in == one.num_out and one.geometry.kernel_shape == (3, 3)
    ]
    # Of two for each of four blocks the first of a stage is no square.
    repeats = KNOWN["WideResNet-28x10"].repeated
    assert sum(of_wide) * 6 == 7 * sum(times * n * s for times, n, s in repeats)
    narrowing = [
        products
        for one, products in recorded(KNOWN["ResNet-50"])
        if one.num_in == 4 * one.num_out and one.geometry.kernel_shape == (1, 1)
    ]
    repeats = KNOWN["ResNet-50"].repeated
    assert len(narrowing) == sum(times for times, _, _ in repeats)
    assert sum(narrowing) * 17 == 4 * sum(times * n * s for times, n, s in repeats)


def recorded(known: Known) -> list[tuple]:
    """The convolutions of an image, and the multiply-adds of each."""
    network = eqx.filter_eval_shape(known.make, key=jax.random.key(0))
    image = jax.ShapeDtypeStruct((1, *known.shape), jnp.float32)
    with nn.conv.recorded_convs() as calls:
        eqx.filter_eval_shape(lambda n, x: n(x, eqx.nn.State(n))[0], network, image)
    sizes = [(c.geometry.out_shape, c.geometry.kernel_shape) for c in calls]
    return [
        (c, math.prod(out) * math.prod(taps) * c.num_in * c.num_out)
        for c, (out, taps) in zip(calls, sizes, strict=True)
    ]


def test_what_is_kept_is_what_layers_meet():
    """By hand, of 3 weights and 5 numbers a row. Catches a factor."""
    small = model.Network(3, 7, 2, 4, 5)
    assert model.mean_field(small, rows=2, draws=3).kept_bytes == 4 * 3 * (6 + 10)
    assert model.mean_field_cut(small, rows=2, devices=4).kept_bytes == 4 * (3.75 + 10)
    assert model.hmc(small, rows=2, num_leapfrog=9).kept_bytes == 4 * 10
    sizes = {"rows": 2, "num_steps": 6, "drift_widths": (1, 1), "num_hidden": 0}
    kept = model.sde_bnn(small, small, **sizes).kept_bytes
    assert kept == 4 * (6 * (3 + 10) + 10)


def test_devices_change_what_they_share_alone():
    """Catches an axis that sends where chains are apart, or a sum that grows with K."""
    network = sizes(KNOWN["ResNet-50"])
    few, many = (costs(KNOWN["ResNet-50"], network, k) for k in (8, 64))
    for name in few:
        assert many[name].sent_bytes <= 1.13 * few[name].sent_bytes
    assert few["HMC, chains"].sent_bytes == few["SGLD, chains"].sent_bytes == 0
    assert few["HMC, data"].flops == pytest.approx(
        8 * many["HMC, data"].flops, rel=1e-3
    )
    cut = "mean field by Adam, fsdp"
    assert few[cut].state_bytes == 8 * many[cut].state_bytes
    assert model.all_reduce(8.0, 1) == model.all_gather(8.0, 1) == 0


def test_a_ring_of_several_nodes_waits_for_the_network():
    network = sizes(KNOWN["ResNet-50"])
    cost = model.mean_field(network, rows=1, devices=8)
    _, within = BF16.seconds(cost, 8)
    _, between = BF16.seconds(cost, 9)
    assert between == 9 * within


def test_arithmetic_has_a_row_for_each():
    networks, rows = arithmetic()
    cases = {(row["network"], row["method"], row["devices"]) for row in rows}
    assert len(cases) == len(rows) == len(networks) * 8 * 2


def test_the_farthest_ratio_counts():
    """Catches a target that looks at one side."""
    ratio = lambda *values: scaling.worst([{"r": v} for v in values], "r")
    assert ratio(1.1, 0.7, 1.0) == 0.7
    assert ratio(0.9, 1.3) == 1.3
    assert scaling.over(0.0, 0.0) == 1.0
    assert scaling.over(8.0, 0.0) == float("inf")
