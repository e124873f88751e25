"""Chains that are killed at random go on to the same bits."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest
from sampling.killed_chains import run

SCRIPT = Path(__file__).with_name("killed_chains.py")
NUM_KILLS = 20


def start_child(folder: Path) -> subprocess.Popen:
    with folder.with_suffix(".stderr").open("w", encoding="utf-8") as stderr:
        return subprocess.Popen(
            [sys.executable, str(SCRIPT), str(folder)],
            env=os.environ
            | {
                "PYTHONPATH": os.pathsep.join([str(SCRIPT.parent.parent), *sys.path]),
                "JAX_COMPILATION_CACHE_DIR": jax.config.jax_compilation_cache_dir,
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            },
            stderr=stderr,
        )


@pytest.mark.slow
def test_killed_at_random_and_resumed_to_the_same_bits(tmp_path):
    """In warm-up, at its end and while sampling: 20 kills, all among the steps.

    Catches a burn-in that ended, was saved, and went on when resumed (seen).
    """
    folder, rng = tmp_path / "chains", random.Random(0)
    marker, first_steps = folder.with_suffix(".sampling"), []
    for _ in range(NUM_KILLS):
        marker.unlink(missing_ok=True)
        child = start_child(folder)
        deadline = time.monotonic() + 300  # it imports and compiles
        while not marker.exists():
            assert child.poll() is None, folder.with_suffix(".stderr").read_text()
            assert time.monotonic() < deadline, "the child hangs"
            time.sleep(0.005)
        time.sleep(rng.uniform(0.05, 1.0))
        assert child.poll() is None, "over before its kill"
        child.kill()
        assert child.wait() == -signal.SIGKILL
        assert not folder.with_suffix(".done").exists()
        first_steps.append(int(marker.read_text()))
    assert first_steps == sorted(first_steps)
    assert first_steps[-1] > NUM_KILLS, "no progress between kills"
    code = start_child(folder).wait(timeout=400)
    assert code == 0, folder.with_suffix(".stderr").read_text()
    whole = tmp_path / "whole"
    run(whole, slow=False)
    names = sorted(path.name for path in whole.glob("*.npy"))
    assert names == sorted(path.name for path in folder.glob("*.npy"))
    for name in names:
        found, expected = np.load(folder / name), np.load(whole / name)
        assert found.tobytes() == expected.tobytes(), name
