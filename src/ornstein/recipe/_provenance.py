"""Where a result comes from: command, commit, versions, machine, seed, seconds."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

from ..nn.conv import num_cores, processor

PACKAGES = ("ornstein", "jax", "equinox", "diffrax", "optax", "numpyro", "numpy")
"""Those whose versions a result names."""


def provenance(command: str, *, seed: int, seconds: float) -> dict[str, Any]:
    """What to keep beside a result, to get it again.

    Args:
        command: as it was typed.
        seed: of everything random.
        seconds: that it took.
    """
    return {
        "command": command,
        "commit": commit(),
        "versions": versions(),
        "device": device(),
        "processor": processor(),
        "cores": num_cores(),
        "seed": seed,
        "seconds": round(seconds, 1),
    }


def versions() -> dict[str, str]:
    """Python's and those of `PACKAGES` that are installed."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def device() -> str:
    """The first device and how many there are: `1 x cpu`."""
    devices = jax.devices()
    return f"{len(devices)} x {devices[0].device_kind}"


def commit() -> str | None:
    """The commit of the checkout that the package lies in, `+` if it was changed."""
    source = Path(__file__).resolve().parent
    if not any((folder / ".git").exists() for folder in source.parents):
        return None
    # An installed copy inside somebody else's checkout is not tracked by it.
    if not _git(source, "ls-files", "__init__.py"):
        return None
    head = _git(source, "rev-parse", "--short=12", "HEAD")
    changed = _git(source, "status", "--porcelain", "--untracked-files=no")
    return f"{head}+" if head and changed else head or None


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
