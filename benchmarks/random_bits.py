"""Raw bits of our generator on standard output, for batteries of tests.

    python -m benchmarks.random_bits [--across] [--places 65536] | RNG_test stdin32

As noise is drawn: a key for each block, folded from one. With `--across` the numbers of
4,096 keys at one place come before those at the next: what the steps of a chain see.
ADR 28 says what PractRand and TestU01 found.
"""

import argparse
import sys

import jax
import numpy as np
from jax import Array

from ornstein._normals import random_bits

NUM_KEYS = 4_096


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--across", action="store_true")
    parser.add_argument("--places", type=int, default=2**16)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    root = jax.random.key(args.seed)
    num_keys = NUM_KEYS if args.across else max(1, 2**24 // args.places)

    @jax.jit
    def block(first: Array) -> Array:
        numbers = first + jax.numpy.arange(num_keys, dtype=jax.numpy.uint32)
        keys = jax.vmap(lambda n: jax.random.fold_in(root, n))(numbers)
        bits = jax.vmap(lambda key: random_bits(key, (args.places,)))(keys)
        return bits.T if args.across else bits

    first = 0
    try:
        while True:
            sys.stdout.buffer.write(np.asarray(block(np.uint32(first))).tobytes())
            first += num_keys
    except BrokenPipeError:
        sys.stderr.close()  # the battery has had enough


if __name__ == "__main__":
    main()
