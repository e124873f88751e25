"""What a compiled program computes and sends, read from its text.

XLA's own counts (`cost_analysis`) take the body of a loop once and leave out what goes
between devices. Here loops count as often as they run, and of a `cond` the costliest
branch counts. A loop whose number of runs is not part of the program (how many samples
a call draws, say) counts once: what is read is then one step.
"""

import math
import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

_SIZES = {"pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "bf16": 2, "f16": 2}
_SIZES |= {"s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8}
_HEADER = re.compile(r"(ENTRY )?%?([\w.-]+) \(.*\{$")
_INSTRUCTION = re.compile(r"\s+(?:ROOT )?%([\w.-]+) = (\(.*?\)|\S+) ([\w-]+)\((.*)$")
_ARRAY = re.compile(r"\b([a-z]+\d*)\[([\d,]*)\]")
_CALLED = re.compile(r"\b(?:calls|to_apply)=%([\w.-]+)")
_BRANCHES = re.compile(
    r"branch_computations=\{(.*?)\}|(?:true|false)_computation=(%[\w.-]+)"
)
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')

COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
)


class Sent(NamedTuple):
    """One collective operation.

    Attributes:
        kind: its name.
        num_bytes: of the whole array: what all-reduce leaves on each device, what
            all-gather puts together, what reduce-scatter takes from each.
        group_size: devices that take part together.
        times: how often a run of the program does it.
        pairs: (from, to) of a permutation; empty for the others.
    """

    kind: str
    num_bytes: int
    group_size: int
    times: int
    pairs: tuple[tuple[int, int], ...] = ()

    @property
    def bytes_a_device(self) -> float:
        """What each device sends when devices stand in a ring.

        All-reduce is a reduce-scatter and an all-gather; in each, a device hands on K -
        1 of the K parts. Of a permutation: what a device sends that sends at all.
        """
        k, size = self.group_size, self.times * self.num_bytes
        if self.kind == "collective-permute":
            return float(size)
        return (2 if self.kind == "all-reduce" else 1) * (k - 1) / k * size


class Instruction(NamedTuple):
    """A line of a program: its name, type, operation, and the rest of it."""

    name: str
    type: str
    opcode: str
    rest: str

    @property
    def num_bytes(self) -> int:
        """Of what it gives."""
        return sum(_SIZES[kind] * math.prod(shape) for kind, shape in shapes(self.type))


class Program:
    """A compiled program.

    Args:
        text: `compiled.as_text()`.

    Raises:
        ValueError: for operations that begin in one place and end in another, which
            this does not read (`all-reduce-start`, on GPU).
    """

    def __init__(self, text: str):
        self._computations: dict[str, list[Instruction]] = {}
        self.entry = ""
        current: list[Instruction] = []
        for line in re.sub(r"/\*.*?\*/", "", text).splitlines():
            if header := _HEADER.match(line):
                current = self._computations.setdefault(header[2], [])
                self.entry = header[2] if header[1] else self.entry
            elif found := _INSTRUCTION.match(line):
                current.append(Instruction(*found.groups()))
        for lines in self._computations.values():
            for line in lines:
                if line.opcode.removesuffix("-start") in COLLECTIVES:
                    if line.opcode.endswith("-start"):
                        raise ValueError(f"{line.opcode} is not read: compile for CPU.")
                if line.opcode == "convolution":
                    raise ValueError(
                        "Work of convolutions is not read: products alone."
                    )

    @cached_property
    def flops(self) -> float:
        """Of matrix products alone: 2 for each product of two numbers and its sum."""
        return self._flops(self.entry)

    @cached_property
    def sent(self) -> list[Sent]:
        """All collective operations."""
        return list(self._sent(self.entry, 1))

    def bytes_a_device(self) -> float:
        """That the device which sends most sends in a run of the program."""
        ring = sum(one.bytes_a_device for one in self.sent if not one.pairs)
        by_device: dict[int, float] = {}
        for one in self.sent:
            for source, target in one.pairs:
                if source != target:
                    by_device[source] = by_device.get(source, 0) + one.bytes_a_device
        return ring + max(by_device.values(), default=0.0)

    def bytes_by_kind(self) -> dict[str, float]:
        """That a device sends, by operation."""
        found: dict[str, float] = {}
        for one in self.sent:
            found[one.kind] = found.get(one.kind, 0) + one.bytes_a_device
        return found

    def num_unknown_loops(self) -> int:
        """Loops that count once because the program does not say how often they run."""
        lines = [line for part in self._computations.values() for line in part]
        return sum(i.opcode == "while" and not _TRIPS.search(i.rest) for i in lines)

    def _flops(self, name: str) -> float:
        lines = self._computations[name]
        types = {line.name: line.type for line in lines}
        total = 0.0
        for line in lines:
            if line.opcode == "dot":
                total += _flops_of_dot(line, types)
            total += sum(n * self._flops(name) for name, n in _called(line))
            total += max(map(self._flops, _branches(line)), default=0.0)
        return total

    def _sent(self, name: str, times: int) -> Iterator[Sent]:
        for line in self._computations[name]:
            if line.opcode in COLLECTIVES:
                yield _collective(line, times)
                continue
            for called, n in _called(line):
                yield from self._sent(called, n * times)
            branches = [list(self._sent(b, times)) for b in _branches(line)]
            cost = lambda found: sum(one.bytes_a_device for one in found)
            yield from max(branches, key=cost, default=[])


def shapes(type_: str) -> list[tuple[str, tuple[int, ...]]]:
    """The arrays of a type, each with its kind of number."""
    found = []
    for kind, dims in _ARRAY.findall(type_):
        found.append((kind, tuple(int(n) for n in dims.split(",") if n)))
    return found


def _called(line: Instruction) -> list[tuple[str, int]]:
    """Computations that a line runs, and how often."""
    if line.opcode == "while":
        trips = _TRIPS.search(line.rest)
        body = re.search(r"\bbody=%([\w.-]+)", line.rest)
        assert body is not None, line
        return [(body[1], int(trips[1]) if trips else 1)]
    return [(name, 1) for name in _CALLED.findall(line.rest)]


def _branches(line: Instruction) -> list[str]:
    if line.opcode != "conditional":
        return []
    found = [a or b for a, b in _BRANCHES.findall(line.rest)]
    return [name for part in found for name in re.findall(r"%([\w.-]+)", part)]


def _flops_of_dot(line: Instruction, types: dict[str, str]) -> float:
    operand = re.search(r"%([\w.-]+)", line.rest)
    summed = re.search(r"lhs_contracting_dims=\{([\d,]*)\}", line.rest)
    assert operand, line
    assert summed, line
    ((_, left),) = shapes(types[operand[1]])
    ((_, out),) = shapes(line.type)
    contracted = math.prod(left[int(n)] for n in summed[1].split(",") if n)
    return 2.0 * math.prod(out) * contracted


def _collective(line: Instruction, times: int) -> Sent:
    size = _group_size(line.rest)
    num_bytes = line.num_bytes
    if line.opcode == "reduce-scatter":
        num_bytes *= size
    pairs = re.search(r"source_target_pairs=\{(\{.*?\})\}", line.rest)
    found = re.findall(r"\{(\d+),(\d+)\}", pairs[1]) if pairs else []
    return Sent(
        line.opcode, num_bytes, size, times, tuple((int(a), int(b)) for a, b in found)
    )


def _group_size(rest: str) -> int:
    """Of `{{0,1},{2,3}}`, `[4,2]<=[8]` or `mesh['a'=4,'b'=2] {'b'}`: 2."""
    if "source_target_pairs" in rest:
        return 1
    if found := re.search(r"replica_groups=\[\d+,(\d+)\]", rest):
        return int(found[1])
    if found := re.search(r"replica_groups=\{\{([\d,]*)\}", rest):
        return len(found[1].split(","))
    found = re.search(r"replica_groups=mesh\[(.*?)\][^{]* \{(.*?)\}", rest)
    if found is None:
        raise ValueError(f"Which devices take part is not read: {rest[:300]}")
    axes = {name: int(n) for name, n in re.findall(r"'(\w+)'=(\d+)", found[1])}
    return math.prod(axes[name] for name in re.findall(r"'(\w+)'", found[2]))
