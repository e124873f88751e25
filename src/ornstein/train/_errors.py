"""What can go wrong in a run that is not a wrong argument."""


class NonFiniteError(ArithmeticError):
    """The loss or its gradient stopped being a number; training stopped there."""


class CheckpointError(RuntimeError):
    """A checkpoint cannot be read, or belongs to another run."""
