"""What the progress bar says."""

import io

import pytest
from rich.console import Console

from ornstein.train import Plan, ProgressBar


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=200, force_terminal=True)


def _shown(console, record, **known):
    bar = ProgressBar(console)
    plan = Plan(
        num_epochs=2,
        num_steps=10,
        first_step=0,
        num_data=20,
        batch_size=4,
        num_parameters=3,
        records=[],
        **known,
    )
    bar.start(plan)
    bar.advance(7, record)
    bar.stop()
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("record", "number"),
    [({"kl": 3.0}, "KL 3 "), ({"kl": 3.0, "local_kl": 40.0}, "KL 43 ")],
    ids=["shared", "shared and local"],
)
def test_kl_is_all_of_it(console, record, number):
    assert number in _shown(console, {"elbo": -1.0, **record})


def test_a_record_without_kl_shows_none(console):
    shown = _shown(console, {"elbo": -1.0})
    assert "ELBO -1" in shown
    assert "KL" not in shown


def test_an_energy_is_called_no_kl(console):
    """Catches (seen) the energy of `MAP`'s prior shown as a KL, beside an ELBO."""
    record = {"elbo": -9.0, "loss": 3.0, "kl": 7.0}
    shown = _shown(console, record, has_bound=False)
    assert "loss 3 " in shown
    assert "energy 7 " in shown
    assert "ELBO" not in shown
    assert "KL" not in shown


def test_steps_say_their_epoch(console):
    assert "epoch 2/2" in _shown(console, {"elbo": -1.0})
