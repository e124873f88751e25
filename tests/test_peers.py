"""The benchmarks' peers solve our problem: else their times would say nothing."""

import json
import time
from pathlib import Path

import jax.random as jr
import numpy as np
import pytest

pytest.importorskip("torchsde", reason="needs the extra `bench`")
pytest.importorskip("bayesian_torch", reason="needs the extra `bench`")

from benchmarks import _timing
from benchmarks._timing import Target, interleaved
from benchmarks.peers import check, implicit_check, sampler, sampler_check, toy
from docs.records import Folder
from docs.tables import targets


@pytest.mark.slow
def test_toy_peers_give_our_loss_and_gradient():
    """Seen to fail: another KL, a shifted time, a reversed order of the increments."""
    check.check_toy_peers(toy.make_params(key=jr.key(0)), key=jr.key(1))


@pytest.mark.slow
def test_image_peer_gives_our_loss():
    """Seen to fail: images or kernels not mirrored, time as the last channel."""
    check.check_image_peer(key=jr.key(0))


@pytest.mark.slow
def test_sampler_peers_take_our_step():
    """Seen to fail: no prior, a step not halved, other noise, another friction, a KL
    that is a mean, no gradient for the scales.
    """
    key = jr.key(2)
    sampler_check.check_sampler_peers(sampler.make_classes(key=key), key=key)


@pytest.mark.slow
def test_implicit_peer_gives_our_loss_and_gradient():
    """Seen to fail: a doubled KL, shifted noise."""
    implicit_check.check_implicit_peer(key=jr.key(1))


def test_another_loss_is_refused():
    check.check_loss("A peer", 1.0009, 1.0)
    for found in (1.0011, float("nan")):
        with pytest.raises(check.PeerDiffersError, match="A peer gives a loss of"):
            check.check_loss("A peer", found, 1.0)


def test_another_gradient_is_refused():
    ours = toy.Params(np.ones(3), ((np.ones((2, 2)), np.zeros(2)),))
    check.check_grads("A peer", ours, ours)
    other = ours._replace(w0=np.array([1.0, 1.0, 1.01]))
    with pytest.raises(check.PeerDiffersError, match=r"shape \(3,\)"):
        check.check_grads("A peer", other, ours)


def test_interleaved_times_tell_slow_from_fast():
    cases = {"slow": lambda: time.sleep(0.02), "fast": lambda: time.sleep(0.002)}
    times = interleaved(cases, num_rounds=3)
    assert times["slow"] > 0.02
    assert 0.002 < times["fast"] < times["slow"]


def test_a_target_can_be_missed():
    assert Target("", 1.1, at_most=1.15).is_met
    assert not Target("", 1.2, at_most=1.15).is_met
    assert Target("", 4.1, at_least=4.0).is_met
    assert not Target("", 3.9, at_least=4.0).is_met
    assert not Target("", float("nan"), at_most=4.0).is_met


def test_results_in_a_folder_name_the_processor(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["benchmarks/sde.py"])
    monkeypatch.setattr(_timing, "_cpu", lambda: "Intel(R) Xeon(R) CPU @ 2.20GHz")
    monkeypatch.setattr(_timing, "processor", lambda: "intel avx512")
    target = Target("ours / theirs", 0.5, at_most=1.0)
    _timing.write_json(tmp_path, {"ours": {"ms": 1.0}}, [target])
    monkeypatch.setattr(_timing, "_cpu", lambda: "AMD EPYC")
    monkeypatch.setattr(_timing, "processor", lambda: "amd avx2")
    later = Target("ours / theirs", 0.3, at_most=0.4)
    _timing.write_json(tmp_path / "new", {"ours": {"ms": 2.0}}, [later])
    name = "sde-amd-epyc-avx2.json"
    (tmp_path / "new" / name).rename(tmp_path / name)
    path = tmp_path / "sde-intel-xeon-avx512.json"
    old = json.loads(path.read_text())
    old["provenance"]["time"] = "2026-01-01T00:00:00+00:00"
    path.write_text(json.dumps(old))
    table = targets(Folder(tmp_path).every("sde"))
    # What was met once misses the aim of today.
    assert "| ours / theirs | 0.30 | 0.50, missed | ≤ 0.4 |" in table
    assert "AMD EPYC, AVX2 | Intel Xeon CPU, AVX-512 |" in table
    assert Folder(tmp_path).sde.rows.ours.ms == 2.0
    with pytest.raises(LookupError, match=r"no latent\.json"):
        _ = Folder(tmp_path).latent
    path.rename(tmp_path / "sde.json")
    with pytest.raises(LookupError, match="which is meant"):
        _ = Folder(tmp_path).sde


def test_committed_results_name_their_processor():
    paths = list((Path(__file__).parents[1] / "results" / "benchmarks").glob("*.json"))
    assert paths
    for path in paths:
        made = json.loads(path.read_text())["provenance"]
        kind = _timing.slug(made["cpu"], made.get("instructions", ""))
        assert path.stem.endswith(f"-{kind}"), path.name
