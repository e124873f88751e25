"""What a step of each method costs one device, on paper.

Notation: P weights of a network, M multiply-adds of a row on its way through (M₁ of
them in the layer that meets the data), A numbers that a row leaves for the way back, b
rows a device, S draws, K devices along an axis, T steps over depth, L leapfrog steps.
All numbers have four bytes. Floating-point work is that of matrix products and
convolutions: 2 for a multiply-add. A row's gradient goes through the network once to
its output, and twice back, for weights and for inputs, of which data need none:
2 (3 M - M₁).

Devices stand in a ring. A sum of n bytes that all are to have (all-reduce) makes each
send 2 (K - 1) / K n; putting n bytes together of which each has a K-th (all-gather), or
adding up n bytes of which each keeps a K-th (reduce-scatter), half of it.
"""

from typing import NamedTuple

BYTES = 4
OF_SNR = 2
"""Numbers that `fit` keeps of each trained one beside the optimiser's: running means of
its gradient and of the square, for their signal-to-noise ratio; none with
`snr_decay=None`.
"""


class Network(NamedTuple):
    """What costs depend on.

    Attributes:
        num_weights: P.
        num_products: M.
        num_first: M₁.
        num_nodes: inputs of all layers, or channels of them.
        num_kept: A, the inputs of all layers.
    """

    num_weights: int
    num_products: int
    num_first: int
    num_nodes: int
    num_kept: int

    @property
    def gradient(self) -> float:
        """Floating-point work of a row's gradient."""
        return 2.0 * (3 * self.num_products - self.num_first)


class Cost(NamedTuple):
    """Of one step, for each device.

    Attributes:
        flops: of matrix products.
        state_bytes: that stay from one step to the next.
        kept_bytes: from the way there to the way back, about: inputs of layers and
            drawn weights. A compiler also keeps others, or makes some again.
        sent_bytes: by each device of a ring.
        num_rounds: messages that have to wait for one another, of a network without
            batch normalisation, each of which adds four.
    """

    flops: float
    state_bytes: float
    kept_bytes: float
    sent_bytes: float
    num_rounds: int


def all_reduce(num_bytes: float, devices: int) -> float:
    """Bytes that each of the devices sends."""
    return 2 * (devices - 1) / devices * num_bytes


def all_gather(num_bytes: float, devices: int) -> float:
    """Bytes that each of the devices sends; of reduce-scatter too."""
    return (devices - 1) / devices * num_bytes


def mean_field(
    network: Network, *, rows: int, draws: int = 1, devices: int = 1
) -> Cost:
    r"""Reparameterised weights by Adam, rows cut.

    Each draw's weights $w = \mu + \sigma \epsilon$ are the same everywhere, so that the
    gradient of w is added up over devices: P numbers a draw. Those of $\mu$ and $\rho$
    are made of it afterwards, on every device, and so no 2 P travel. Draws follow each
    other, and each adds up its own: S P. Kept are w and $\epsilon$ of each draw, and
    its activations. The state is $\mu, \rho$, two moments of each, and two of `fit`'s
    own: 10 P.
    """
    return Cost(
        flops=draws * rows * network.gradient,
        state_bytes=(6 + 2 * OF_SNR) * BYTES * network.num_weights,
        kept_bytes=BYTES * draws * (2 * network.num_weights + rows * network.num_kept),
        sent_bytes=draws * all_reduce(BYTES * network.num_weights, devices),
        num_rounds=draws if devices > 1 else 0,
    )


def mean_field_cut(
    network: Network, *, rows: int, devices: int, reduces_whole: bool = True
) -> Cost:
    r"""The same along `fsdp`: what is kept of each weight lies on one device.

    Each device draws its part of w, and all put w together: P numbers, and not the 2 P
    of $\mu$ and $\rho$. Of its gradient each needs its part. The state is 10 P / K, and
    of $\epsilon$ P / K is kept. Messages are at least two; XLA has some for each array.
    Left out: arrays too small to be cut are whole everywhere, and draws of small
    arrays, made as one, are handed out by permutations, at most about their own size.
    Of a network with such arrays alone (64-128-48-10, K = 4) traffic was seen 1.33
    times, and the state 1.13 times, what is said here.

    Args:
        network: of the weights.
        rows: of each device.
        devices: along the axis.
        reduces_whole: whether the gradient is added up everywhere and cut then, as XLA
            partitions it on a CPU: 3 (K - 1) / K P numbers in all. With reduce-scatter
            in place of the two, 2 (K - 1) / K P.
    """
    one = mean_field(network, rows=rows)
    num_bytes = BYTES * network.num_weights
    reduce = all_reduce if reduces_whole else all_gather
    sent = all_gather(num_bytes, devices) + reduce(num_bytes, devices)
    return one._replace(
        state_bytes=one.state_bytes / devices,
        kept_bytes=one.kept_bytes - num_bytes * (devices - 1) / devices,
        sent_bytes=sent,
        num_rounds=2 if devices > 1 else 0,
    )


def ivon(network: Network, *, rows: int, draws: int = 1, devices: int = 1) -> Cost:
    r"""Mean field by IVON: as by Adam, with $\mu, \rho$, momentum and Hessian: 8 P."""
    adam = mean_field(network, rows=rows, draws=draws, devices=devices)
    return adam._replace(state_bytes=(4 + 2 * OF_SNR) * BYTES * network.num_weights)


def implicit(
    network: Network, *, rows: int, components: int, draws: int = 2, devices: int = 1
) -> Cost:
    """Noise on nodes, by SGD with momentum, rows cut.

    Point weights and a mixture of 2 numbers a component and node: V = 2 C nodes. Each
    draw adds up the gradient of both: S (P + V). The first layer's inputs have noise,
    so that they need a gradient too: 6 M a row. Kept are activations before and after
    their multipliers. The state is two numbers for each, and two of `fit`'s own:
    4 (P + V).
    """
    num_trained = network.num_weights + 2 * components * network.num_nodes
    return Cost(
        flops=draws * rows * 6.0 * network.num_products,
        state_bytes=(2 + OF_SNR) * BYTES * num_trained,
        kept_bytes=2 * BYTES * draws * rows * network.num_kept,
        sent_bytes=draws * all_reduce(BYTES * num_trained, devices),
        num_rounds=draws if devices > 1 else 0,
    )


def sde_bnn(
    dynamics: Network,
    rest: Network,
    *,
    rows: int,
    num_steps: int,
    drift_widths: tuple[int, int],
    num_hidden: int,
    num_blocks: int = 1,
    is_start_random: bool = True,
    devices: int = 1,
) -> Cost:
    """Weights w that a stochastic differential equation moves, by Adam, rows cut.

    The path of w is one for all rows: every device solves it whole. Each step back adds
    up the gradient of that step's w over devices before the drift network sees it:
    T |w| numbers, one message after the other. The gradient of the drift network is
    then the same everywhere, and its weights (first + last + 1 for each of w's) are
    never sent. Its matrix products, forward and for its input, are done by all (the
    gradient of its weights is of one row: no matrix product): 4 |w| (first + last) a
    step, and as many in its hidden layers.
    The state is five numbers for each weight of the drift network, of q(w₀) (mean and
    scale) and of the rest: it, Adam's moments and two of `fit`'s own.

    Args:
        dynamics: the network of w, which each step calls (of several blocks the sum);
            its inputs need gradients.
        rest: layers beside it, such as the readout, whose weights are points.
        rows: of each device.
        num_steps: T, calls of the dynamics.
        drift_widths: the first and the last hidden width of the drift network.
        num_hidden: its weights between them, of all blocks.
        num_blocks: solved one after the other.
        is_start_random: whether q(w₀) has scales.
        devices: that share rows.
    """
    num_moved, width = dynamics.num_weights, sum(drift_widths)
    of_drift = num_moved * (width + 1) + num_hidden
    of_start = (2 if is_start_random else 1) * num_moved
    of_rows = 6 * num_steps * dynamics.num_products + rest.gradient
    sent = num_steps * num_moved + rest.num_weights
    return Cost(
        flops=rows * of_rows + 4 * num_steps * (num_moved * width + num_hidden),
        state_bytes=(3 + OF_SNR) * BYTES * (of_drift + of_start + rest.num_weights),
        kept_bytes=BYTES
        * (num_steps * (num_moved + rows * dynamics.num_kept) + rows * rest.num_kept),
        sent_bytes=all_reduce(BYTES * sent, devices),
        num_rounds=num_blocks * num_steps + 1 if devices > 1 else 0,
    )


def hmc(
    network: Network, *, rows: int, num_leapfrog: int, chains: int = 1, devices: int = 1
) -> Cost:
    """L gradients of all rows a chain.

    Along `chains` nothing is sent: `devices` is 1, and each has all rows. Along `data`
    each has b of them, and every leapfrog step adds up a gradient: L P for each chain.
    A chain has its position, gradient, mass, and two moments for the warm-up: 5 P.

    Args:
        network: of the weights.
        rows: of each device.
        num_leapfrog: L.
        chains: of each device.
        devices: along `data`.
    """
    return Cost(
        flops=chains * num_leapfrog * rows * network.gradient,
        state_bytes=5 * BYTES * chains * network.num_weights,
        kept_bytes=BYTES * chains * rows * network.num_kept,
        sent_bytes=chains
        * num_leapfrog
        * all_reduce(BYTES * network.num_weights, devices),
        num_rounds=num_leapfrog if devices > 1 else 0,
    )


def sgld(network: Network, *, rows: int, chains: int = 1) -> Cost:
    """A gradient of a batch of b rows for each of a device's chains; nothing is sent.

    A chain has its position and, in the state that all samplers of its kind share, a
    momentum: 2 P.
    """
    return Cost(
        flops=chains * rows * network.gradient,
        state_bytes=2 * BYTES * chains * network.num_weights,
        kept_bytes=BYTES * chains * rows * network.num_kept,
        sent_bytes=0.0,
        num_rounds=0,
    )
