"""Several processes that share a run: what they tell each other.

Small things go by JAX's coordinator, which every process of `jax.distributed` has: they
wait as long as it takes, where a collective operation would not, and need no device.
Arrays go by devices. The first process (number 0) decides, reads and writes; all call
the functions here in the same order, but for those of how a process ends.
"""

import itertools
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

# JAX has no public name for what its own checkpoints and barriers use, too.
from jax._src.distributed import global_state
from jax.experimental.multihost_utils import broadcast_one_to_all

_A_DAY = 24 * 3600 * 1000
"""Milliseconds: a process that is alive may take long to come to a place."""
_BY_COORDINATOR = 2**19
"""Bytes, at most, that go by the coordinator."""
_CHUNK = 2**24
"""Bytes that devices hand over at once, so that one program is compiled for all."""
_MOST_SHOWN = 80
_ENDED = "ornstein/ended/"
_OF_OTHERS = re.compile(r"\bgloo\b|\bNCCL\b|coordination.?service", re.IGNORECASE)
"""What a collective operation says whose other end is gone."""
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_number = itertools.count()
_forgotten: str | None = None
_last_words: dict[str, str] = {}


class FirstProcessError(ValueError):
    """What the first process refused, in the others."""


def num_processes() -> int:
    """How many share this run; 1 without `jax.distributed.initialize`."""
    return jax.process_count() if jax.distributed.is_initialized() else 1


def is_first() -> bool:
    """Whether this is the process that reads, writes and speaks."""
    return num_processes() == 1 or jax.process_index() == 0


def from_first(content: bytes) -> bytes:
    """The first process's bytes, in all of them.

    Args:
        content: its own; what others give is not read.
    """
    if num_processes() == 1:
        return content
    client, key = _client(), f"ornstein/{next(_number)}"
    if is_first():
        client.key_value_set_bytes(f"{key}/size", str(len(content)).encode())
    size = int(client.blocking_key_value_get_bytes(f"{key}/size", _A_DAY))
    if size > _BY_COORDINATOR:
        return _by_devices(content, size)
    if is_first():
        client.key_value_set_bytes(f"{key}/content", content)
    return client.blocking_key_value_get_bytes(f"{key}/content", _A_DAY)


def _by_devices(content: bytes, size: int) -> bytes:
    found = bytearray()
    for start in range(0, size, _CHUNK):
        chunk = np.zeros(_CHUNK, np.uint8)
        if is_first():
            own = np.frombuffer(content[start : start + _CHUNK], np.uint8)
            chunk[: len(own)] = own
        found += np.asarray(broadcast_one_to_all(chunk)).tobytes()
    return bytes(found[:size])


def first_does(work: Callable[[], bytes]) -> bytes:
    """What the first process's work gives, in all; the others wait for it.

    Args:
        work: that it alone does, such as reading a file.

    Raises:
        FirstProcessError: in the others, if the work fails in the first.
    """
    if num_processes() == 1:
        return work()
    content = b""
    if is_first():
        try:
            content = b"+" + work()
        except Exception as error:
            from_first(b"-" + str(error).encode(errors="replace"))
            raise
    content = from_first(content)
    if content[:1] == b"-":
        said = content[1:].decode(errors="replace")
        raise FirstProcessError(f"process 0 of this run stopped: {said}")
    return content[1:]


def largest(*numbers: int) -> list[int]:
    """Of each number, the largest that a process has."""
    if num_processes() == 1:
        return list(numbers)
    each = [json.loads(text) for text in _from_all(json.dumps(numbers))]
    return [max(values) for values in zip(*each, strict=True)]


def numbers_of_first(*numbers: int) -> list[int]:
    """The first process's numbers, in all."""
    if num_processes() == 1:
        return list(numbers)
    return json.loads(_from_all(json.dumps([int(n) for n in numbers]))[0])


def _from_all(text: str) -> list[str]:
    """What every process says, by their numbers; none goes on before all have."""
    global _forgotten
    client, key = _client(), f"ornstein/{next(_number)}"
    client.key_value_set(f"{key}/{jax.process_index()}", text)
    found = [
        client.blocking_key_value_get(f"{key}/{process}", _A_DAY)
        for process in range(num_processes())
    ]
    if _forgotten is not None:  # all are past the time before: they have said this
        client.key_value_delete(_forgotten)
    _forgotten = f"{key}/{jax.process_index()}"
    return found


def agree(said: Mapping[str, Any], *, remedy: str) -> None:
    """Refuse processes that were given different things.

    Args:
        said: what this one was given, by names that are shown, as JSON.
        remedy: what to do instead, as a clause.

    Raises:
        ValueError: in all processes, saying what differs.
    """
    if num_processes() == 1:
        return
    own = json.loads(_ADDRESS.sub("", json.dumps(said)))
    first = json.loads(from_first(json.dumps(own).encode()))
    names = [name for name in {**first, **own} if own.get(name) != first.get(name)]
    content = json.dumps({name: own.get(name) for name in names})
    for process, found in enumerate(_from_all(content)):
        for name, value in json.loads(found).items():
            how = ""
            texts = _where_apart(_shown(value), _shown(first.get(name)))
            if max(map(len, texts)) <= _MOST_SHOWN:
                how = f" ({texts[0]} instead of {texts[1]})"
            raise ValueError(
                f"Process {process} of this run has another {name} than process 0"
                f"{how}: {remedy}."
            )


def _where_apart(one: str, other: str) -> list[str]:
    """Two texts, or the first lines in which long ones differ."""
    lines = itertools.zip_longest(one.splitlines(), other.splitlines(), fillvalue="")
    pair = next((pair for pair in lines if pair[0] != pair[1]), (one, other))
    return [line.strip().rstrip(",") for line in pair]


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)


def pack(arrays: Mapping[str, np.ndarray], meta: Any) -> bytes:
    """Arrays and JSON as bytes, to the same bits; also of types that NumPy lacks."""
    described = [[name, list(a.shape), a.dtype.name] for name, a in arrays.items()]
    head = json.dumps([described, meta]).encode()
    parts = [np.ascontiguousarray(a).tobytes() for a in arrays.values()]
    return b"".join([len(head).to_bytes(8, "little"), head, *parts])


def unpack(content: bytes) -> tuple[dict[str, np.ndarray], Any]:
    """What `pack` was given."""
    start = 8 + int.from_bytes(content[:8], "little")
    described, meta = json.loads(content[8:start])
    arrays = {}
    for name, shape, dtype in described:
        kind = jax.numpy.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        part = np.frombuffer(content[start : start + size], kind)
        arrays[name] = part.reshape(shape).copy()
        start += size
    return arrays, meta


def note_run(resuming: str) -> None:
    """Tell the watcher how the run is gone on with, should this process die.

    Args:
        resuming: the arguments that resume it; those of the first process count.
    """
    place = os.environ.get("ORNSTEIN_PROCESS_FOLDER")
    if num_processes() > 1 and place is not None:
        text = from_first(resuming.encode()).decode()
        _last_words["resume"] = text
        Path(place, "phase").write_text(f"working {text}", encoding="utf-8")


def say_last(text: str) -> None:
    """Keep what this process is about to end with, for the others."""
    _last_words["said"] = text


def how_to_go_on() -> str:
    """What to do when another process is lost, as a clause."""
    if "resume" not in _last_words:
        return "start all processes again"
    return (
        f"go on with `ornstein {_last_words['resume']}` in all processes, as they "
        "were started"
    )


def is_lost(error: BaseException) -> bool:
    """Whether an error is of another process that cannot be reached any more."""
    return num_processes() > 1 and _OF_OTHERS.search(str(error)) is not None


def lost(error: BaseException) -> ConnectionError:
    """The error that says so, in the words of the one that ended if there are any.

    Args:
        error: of `is_lost`.
    """
    said = _word_of_others(seconds=3.0)
    if said is not None:
        return ConnectionError(said)
    why = str(error).splitlines()[0].strip()
    return ConnectionError(
        "another process of this run has ended, or cannot be reached any more "
        f"({why}): see what the others say, then {how_to_go_on()}."
    )


def _word_of_others(seconds: float) -> str | None:
    """What another process ended with, if it says so within some seconds."""
    begun = time.monotonic()
    while True:
        for _, text in _ended():
            if text:
                return text
        if time.monotonic() - begun >= seconds:
            return None
        time.sleep(0.2)


def hear_of_the_end() -> str:
    """Wait until another process has ended with an error; a sentence that says it."""
    grace: float | None = None
    while True:
        time.sleep(0.5)
        for _, text in [] if "said" in _last_words else _ended():
            if text:
                time.sleep(1.0)  # it may be about to say the same itself
            if text and "said" not in _last_words:
                return text
            # Interrupted: this one is about to be, too, unless it waits for that one.
            grace = time.monotonic() + 30 if grace is None else grace
        if grace is not None and time.monotonic() > grace:
            return (
                "another process of this run was interrupted, and this one has waited "
                f"for it: {how_to_go_on()}."
            )


def _ended() -> list[tuple[int, str]]:
    """Processes that have ended otherwise than well, and what to say of it."""
    client = _client()
    try:
        found = [] if client is None else client.key_value_dir_get(_ENDED)
    except Exception:  # the coordinator is gone, which ends this process, too
        found = []
    ended = [(int(key.rpartition("/")[2]), text) for key, text in found]
    own = jax.process_index()
    return [
        (process, f"process {process} of this run stopped: {text}" if text else "")
        for process, text in ended
        if process != own
    ]


def farewell(code: int, *, seconds: float) -> None:
    """End together with the others, or let them know why not.

    Args:
        code: the exit code of this process.
        seconds: for which an interrupted one waits for others, which are about to be.
    """
    client = _client()
    try:
        if code:
            interrupted = code in (130, 143)
            said = _last_words.get("said", "by an error, which its own output shows")
            text = "" if interrupted else said
            client.key_value_set(f"{_ENDED}{jax.process_index()}", text)
            if not interrupted:
                time.sleep(2.0 if is_first() else 0.0)  # its coordinator ends with it
                return
        wait = round(1000 * seconds) if code else _A_DAY
        client.wait_at_barrier("ornstein/end", wait)
        if not code:
            jax.distributed.shutdown()
    except Exception:  # whoever is not there any more has said why
        return


def _client() -> Any:
    return global_state.client
