"""What rows on disk must offer to be trained on."""

import abc

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Int, Shaped


class AbstractShards(eqx.Module):
    """Rows on disk in blocks, each of which is read whole: of files, or of their parts.

    Attributes:
        block_rows: how many training rows each block has.
        x_like: shape and type of one block row of the inputs, without the rows' axis.
        y_like: the same of the targets.
        digest: differs for blocks of other sizes, or of which other rows are held out.
    """

    block_rows: eqx.AbstractVar[Int[np.ndarray, " blocks"]]
    x_like: eqx.AbstractVar[jax.ShapeDtypeStruct]
    y_like: eqx.AbstractVar[jax.ShapeDtypeStruct]
    digest: eqx.AbstractVar[str]

    @abc.abstractmethod
    def read(
        self, block: int
    ) -> tuple[Shaped[np.ndarray, "rows ..."], Shaped[np.ndarray, "rows ..."]]:
        """The training rows of a block, in their order on disk, as a model takes them.

        It is called from a thread beside the one that trains.

        Args:
            block: its number.

        Raises:
            DataNotFoundError: if its file is gone.
            DataError: if it is not what it was when the blocks were counted.
        """
