"""What devices send each other is what the cost model says."""

import pytest

from benchmarks.scaling import on_devices

pytestmark = pytest.mark.slow

NAMES = (
    "mean field by Adam, 2 draws",
    "mean field by Adam, fsdp",
    "implicit, 2 draws",
    "SDE-BNN",
    "HMC, data",
    "SGLD, chains",
)


@pytest.fixture(scope="module")
def on_eight() -> dict:
    return {row["method"]: row for row in on_devices((8,), names=NAMES)}


@pytest.mark.parametrize("name", NAMES)
def test_devices_send_what_is_on_paper(name: str, on_eight: dict):
    """Catches gradients that travel twice, or in a loop that is not known. Seen to
    fail: loops that count once, parameters whole along `fsdp`, a batch in two parts.
    """
    found = on_eight[name]
    on_paper = pytest.approx(found["sent_bytes_on_paper"], rel=0.2)
    assert found["sent_bytes"] == on_paper


@pytest.mark.parametrize("name", NAMES)
def test_devices_do_and_keep_their_part(name: str, on_eight: dict):
    """Catches work that all do, and a state with more, or fewer, numbers a weight. Seen
    to fail with the same.
    """
    found = on_eight[name]
    for quantity in ("flops", "state_bytes"):
        on_paper = pytest.approx(found[f"{quantity}_on_paper"], rel=0.05)
        assert found[quantity] == on_paper, quantity
    # Some programs send losses and calibration apart; along `fsdp` arrays are, too.
    more = found["num_collectives"] - found["num_rounds_on_paper"]
    assert more > 1 if "fsdp" in name else more in (0, 1)
