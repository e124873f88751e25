"""Several devices, and two processes, have the numbers of one device."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from mesh.cases import CASES, LOOPS

HERE = Path(__file__).parent
# Most of it is compiling each case twice, and a first time for the cache.
pytestmark = pytest.mark.slow

# Of 20 steps: what is left of other orders of sums.
_BOUND = 1e-5
_LONGEST = 900.0


def _start(script: str, *args: str) -> subprocess.Popen:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen(
        [sys.executable, str(HERE / script), *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def _printed(process: subprocess.Popen) -> dict:
    out, errors = process.communicate(timeout=_LONGEST)
    assert process.returncode == 0, errors[-3000:]
    return json.loads(out.splitlines()[-1])


@pytest.fixture(scope="module")
def on_eight() -> dict:
    """What `eight_devices.py` prints."""
    return _printed(_start("eight_devices.py"))


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_of_one_device(name: str, on_eight: dict):
    """Catches randomness that follows the device rather than the row or the draw."""
    for what, difference in on_eight["found"][name].items():
        assert difference < _BOUND, what


def test_devices_hold_their_part_alone(on_eight: dict):
    """Numbers would be the same if every device did all of the work."""
    shares = on_eight["shares"]
    assert shares["rows"] == 1 / 8
    assert 1 / 4 <= shares["parameters"] < 0.3  # biases are whole
    assert shares["floating-point work of a step"] < 0.3


def test_no_device_holds_the_whole_to_save_it(on_eight: dict):
    """What optimisers keep is two or three times the model. Seen failing when the whole
    was put on the first device.
    """
    found = on_eight["bytes of saving"]
    assert found["before"] == found["saving"]
    assert found["parts"] == [[0], [1], [2, 3]]


def test_every_door_says_in_how_many_parts_rows_lie(on_eight: dict):
    """Programs are right without, and bring all images to every device."""
    found = on_eight["parts of doors"]
    assert 8 in found["in memory"]
    assert 8 in found["batch by batch"]
    assert found["predict"] == [8]
    assert 8 in found["all rows"]
    assert found["batches"] == [1]


@pytest.mark.parametrize("form", LOOPS)
def test_a_loop_over_images_has_those_of_its_device(form: str, on_eight: dict):
    """To the partitioner a loop over all images is one that every device needs whole.
    Seen failing without `of_images`, without `over_images`, and with draws before rows.
    """
    found = on_eight["loops over images"][form]
    assert found["gathers"] == 0
    for what, difference in found["difference"].items():
        assert difference < _BOUND, what


@pytest.mark.parametrize("mesh", ["fsdp=4", "one device"])
def test_a_run_goes_on_with_another_mesh(mesh: str, on_eight: dict):
    """Stopped on data=2, fsdp=2. Catches a state that stays as it was cut, a shuffle
    or a draw that begins again, and moments that are left behind.
    """
    for what, difference in on_eight["gone on"][mesh].items():
        assert difference < _BOUND, what


REFUSED = {
    "rows do not divide": "`batch_size` of 32 cannot be shared equally by the 5 "
    "devices along 'data' of `mesh`: take 30 or 35",
    "chains do not divide": "`num_chains` of 8 cannot be shared equally by the 3",
    "draws do not divide": "`num_draws` of 8 cannot be shared equally by the 3",
    "axis without use": "an axis 'chains' of 2 devices, which does nothing in `fit`",
    "no mesh": "`mesh` must be a `Mesh`, got str",
}


@pytest.mark.parametrize("name", REFUSED)
def test_mesh_that_cannot_be_is_refused(name: str, on_eight: dict):
    assert REFUSED[name] in on_eight["refusals"][name]


def test_two_processes_have_the_numbers_of_one(tmp_path: Path):
    """Full gradients, batches and IVON, over gloo; each process has its own clock."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    args = [port, str(tmp_path / "samples")]
    both = [_start("two_processes.py", *args, str(number)) for number in range(2)]
    try:
        for process in both:
            printed = _printed(process)
            for name, found in printed["found"].items():
                assert max(found.values()) < _BOUND, name
            assert "Process 1 of this run has another `key`" in printed["refusal"]
            assert printed["samples"] == printed["in the folder"]
    finally:
        for process in both:
            process.kill()
