"""Sample files that lost, gained or changed bytes, and chains killed as they wrote."""

import logging
import shutil

import jax
import numpy as np
import pytest
from sampling.test_sample import NOISE, Kill, linear, run

import ornstein as orn
from ornstein.mcmc import HMC
from ornstein.sampling import (
    _chains,
    _progress,
    _run,
    _store,
    load_samples,
    save_samples,
)

KERNEL = HMC(3)
DAMAGED = orn.train.CheckpointError


def load(folder):
    return load_samples(folder, linear(), orn.Gaussian(NOISE))


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """Chains that were killed with about half of their samples."""
    folder = tmp_path_factory.mktemp("interrupted") / "samples"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_run, "_CALL_SECONDS", 0.0)  # one sample in each call
        with pytest.raises(KeyboardInterrupt):
            go(folder, callbacks=[Kill(27)])
    return folder


def go(folder, **options):
    return run(KERNEL, folder=folder, thin=2, save_every=0.0, **options)


def cut(path):
    path.write_bytes(path.read_bytes()[:-40])


def extend(path):
    path.write_bytes(path.read_bytes() + bytes(40))


def flip(path):
    content = bytearray(path.read_bytes())
    content[140] ^= 1  # in the first sample of the first chain
    path.write_bytes(content)


def flip_header(path):
    path.write_bytes(path.read_bytes().replace(b"'shape'", b"'shepa'"))


STATES = ("state.npz", "state-before.npz")
DAMAGES = {
    "cut": (
        cut,
        r"0\.npy \(.*weight.*\) cannot be read \(it is cut short.*: put the file",
    ),
    "extended": (extend, r"0\.npy .* bytes instead of \d+: put the file back, or"),
    "flipped": (flip, r"0\.npy .* by its checksum: put the file back, or sample again"),
    "header": (flip_header, r"0\.npy \(.*\) cannot be read"),
    "missing": (lambda path: path.unlink(), r"0\.npy \(.*\) is not there: put"),
    "folder": (lambda p: (p.unlink(), p.mkdir()), r"0\.npy \(.*\) cannot be read"),
    "both states": (
        lambda p: [cut(p.parent / name) for name in STATES],
        r"state\.npz is damaged, and with it the place",
    ),
    "half a state and none": (
        lambda p: [(p.parent / name).write_bytes(b"PK") for name in STATES],
        r"state\.npz is damaged, and with it the place",
    ),
    "half a head": (lambda p: cut(p.parent / "samples.json"), "holds no samples"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_samples_are_neither_gone_on_with_nor_read(name, interrupted, tmp_path):
    """Catches (seen) a short file that a map for writing filled up with zeros, which
    `evaluate` then took; and what was damaged is left as it was found."""
    folder = tmp_path / "samples"
    shutil.copytree(interrupted, folder)
    damage, match = DAMAGES[name]
    damage(folder / "0.npy")
    before = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    with pytest.raises(DAMAGED, match=match):
        go(folder, resume=True)
    with pytest.raises(DAMAGED, match=match):
        load(folder)
    after = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    assert before == after


def flip_last(folder):
    """In what was sampled after the state before."""
    num_kept = load(folder).num_samples
    weight = np.load(folder / "0.npy", mmap_mode="r+")
    weight[0, num_kept - 1] += 1.0
    weight.flush()


TAILS = {
    "cut": lambda folder: cut(folder / "state.npz"),
    "empty": lambda folder: (folder / "state.npz").write_bytes(b""),
    "missing": lambda folder: (folder / "state.npz").unlink(),
    "flipped": flip_last,
}


@pytest.mark.parametrize("name", TAILS)
def test_a_damaged_end_costs_only_what_followed_the_state_before(
    name, interrupted, tmp_path, caplog
):
    """It is read without that, which is said, and sampled again to the same bits.

    Catches a state that is damaged, kept as the one before, and then there is none.
    """
    folder = tmp_path / "samples"
    shutil.copytree(interrupted, folder)
    num_kept = load(folder).num_samples
    TAILS[name](folder)
    with caplog.at_level(logging.WARNING, "ornstein"):
        assert load(folder).num_samples == num_kept - 1
    (said,) = [text for text in caplog.messages if "state before" in text]
    assert said.endswith(
        f": the state before it is used, which has {num_kept - 1} samples of each "
        "chain."
    )

    def killed(*args, **options):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_progress, "save_model", killed)
        with pytest.raises(KeyboardInterrupt):
            go(folder, resume=True)
    assert load(folder).num_samples == num_kept - 1
    resumed, whole = go(folder, resume=True), run(KERNEL, thin=2)
    for other in (resumed, load(folder)):
        jax.tree.map(
            np.testing.assert_array_equal,
            (whole.positions, whole.info, whole.chain_info),
            (other.positions, other.info, other.chain_info),
        )


@pytest.mark.parametrize("name", ["cut", "extended", "flipped", "missing"])
def test_kept_samples_are_checked_too(name, interrupted, tmp_path):
    folder = tmp_path / "kept"
    save_samples(folder, load(interrupted))
    load(folder)
    damage, match = DAMAGES[name]
    damage(folder / "0.npy")
    with pytest.raises(DAMAGED, match=match):
        load(folder)


def test_what_lies_behind_the_last_state_is_sampled_again(interrupted, tmp_path):
    """Killed after samples were written and before the state that counts them, or in
    the middle of a sample: bit for bit what a whole run gives. Catches a checksum of
    more than was counted."""
    folder = tmp_path / "samples"
    shutil.copytree(interrupted, folder)
    num_kept = load(folder).num_samples
    weight = np.load(folder / "0.npy", mmap_mode="r+")
    weight[:, num_kept : num_kept + 2] = 7.0
    weight[0, num_kept + 2] = np.nan
    weight.flush()
    assert load(folder).num_samples == num_kept
    resumed, whole = go(folder, resume=True), run(KERNEL, thin=2)
    for other in (resumed, load(folder)):
        jax.tree.map(
            np.testing.assert_array_equal,
            (whole.positions, whole.info, whole.chain_info),
            (other.positions, other.info, other.chain_info),
        )


def test_killed_as_its_files_were_made(tmp_path, monkeypatch):
    """A folder without a header is none of samples, and is begun again."""
    folder = tmp_path / "samples"

    def killed(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_chains, "write_header", killed)
        with pytest.raises(KeyboardInterrupt):
            go(folder)
    assert sorted(p.suffix for p in folder.iterdir()) == [".begun", *8 * [".npy"]]
    cut(folder / "0.npy")
    with pytest.raises(DAMAGED, match="holds no samples"):
        load(folder)
    resumed, whole = go(folder, resume=True), run(KERNEL, thin=2)
    jax.tree.map(np.testing.assert_array_equal, resumed.positions, whole.positions)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("years of work")
    with pytest.raises(DAMAGED, match="holds no samples"):
        go(tmp_path / "other", resume=True)
    assert [p.name for p in (tmp_path / "other").iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("name", ["0.npy", "thesis.npy", ".lock"])
@pytest.mark.parametrize("resume", [False, True])
def test_files_of_the_users_own_stay(name, resume, tmp_path):
    """Seen failing: `resume=True` wrote over a user's arrays, and emptied a `.lock`."""
    (tmp_path / name).write_text("years of work")
    with pytest.raises((DAMAGED, FileExistsError)):
        go(tmp_path, resume=resume)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "years of work"


def test_checksums_do_not_depend_on_how_samples_come():
    """In one piece or in several, of any type; and each chain has its own."""
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    values = rng.normal(size=(3, 7, 2)).astype("float32")
    tree = (values, {"a": values[..., 0] > 0, "b": np.asarray(values, jnp.bfloat16)})
    nothing = _store.no_checksums(tree)
    whole = _store.add_checksums(nothing, tree)
    parts = nothing
    for piece in (slice(0, 1), slice(1, 4), slice(4, 7)):
        part = jax.tree.map(lambda a, s=piece: a[:, s], tree)
        parts = _store.add_checksums(parts, part)
    assert parts == whole
    assert len({crc for crcs in whole for crc in crcs}) == 9


def test_the_shown_r_hat_reads_few_samples_of_a_long_chain(tmp_path, monkeypatch):
    """Evenly over all. Catches every sample read from disk at every call."""
    seen = []

    def watched(some):
        seen.append(some.shape[1])
        return np.ones(some.shape[2:])

    monkeypatch.setattr(_run, "split_r_hat", watched)
    monkeypatch.setattr(_run, "_WATCHED_SAMPLES", 8)
    monkeypatch.setattr(_run, "_CALL_SECONDS", 0.0)
    go(tmp_path / "samples", callbacks=[Kill(1000)])
    assert max(seen) == 8
    assert min(seen) >= 4
