"""What a data set is: splits of arrays, and what is known about them."""

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import numpy as np
from jaxtyping import Shaped

from .._sentence import Choice, Sentence
from ._clock import Clock
from ._columns import TableEncoding
from ._error import DataError
from ._hold_out import hold_out
from ._series import Span
from ._source import Source
from ._split import Split
from ._standardise import Standardisation
from .stream import Streamed


class Data(eqx.Module):
    """A data set, split and standardised.

    Attributes:
        name: as `load` takes it.
        task: `"classification"`, `"regression"` or `"series"`.
        train: training rows (what is left of them after `validation`); `Streamed` where
            they stay on disk.
        validation: held out of training for choosing, or `None`.
        test: rows for the final judgement.
        num_classes: classes, or `None` where there are none.
        class_names: their names in the order of their numbers; empty where there are no
            classes.
        x_scaling: what was done to the inputs.
        y_scaling: what was done to the targets, or `None`.
        feature_names: the columns of `x`, where the source names them.
        target_names: the columns of `y`, where the source names them.
        notes: sentences to print beside any figure that comes from these data.
        clock: how the times of the user's own sequences became `Series.ts`, or `None`.
        encoding: how the columns of a user's own table became numbers, or `None`.
        id_column: of a user's own table, which names the rows, or `None`.
        image_size: to which a user's own images were brought, or `None`.
        image_fit: how: `"crop"` or `"pad"`.
        source: a fingerprint of the user's own file or folder, or `None`.
        span: when the training series were observed, or `None`: of rows, and where
            that was not kept.
        test_names: of the test rows, from the column or the files that name them;
            empty where nothing does.
    """

    name: str
    task: str
    train: Split | Streamed
    test: Split
    validation: Split | None = None
    num_classes: int | None = None
    class_names: Sequence[str] = ()
    x_scaling: Standardisation | None = None
    y_scaling: Standardisation | None = None
    feature_names: Sequence[str] = ()
    target_names: Sequence[str] = ()
    notes: Sequence[str] = ()
    clock: Clock | None = None
    encoding: TableEncoding | None = None
    id_column: str | None = None
    image_size: int | None = None
    image_fit: str = "crop"
    source: Source | None = None
    span: Span | None = None
    test_names: Sequence[str] = ()

    @property
    def example_shape(self) -> tuple[int, ...]:
        """The shape of one input; of a series, times and features."""
        return self.train.x.shape[1:]

    @property
    def num_outputs(self) -> int:
        """The size of a likelihood's location: classes, columns, or features."""
        if self.num_classes is not None:
            return self.num_classes
        shape = self.train.y.shape
        return 1 if len(shape) == 1 else shape[-1]

    def check_same(self, other: "Data") -> None:
        """Refuse data that would mean something else to a model of these.

        Args:
            other: read again, perhaps by another version or from another place.

        Raises:
            DataError: saying what differs.
        """
        if self.source is not None and other.source is not None:
            if not self.source.is_same(other.source):
                raise self.source.has_changed()
        names = ("task", "class_names", "feature_names", "target_names", "encoding")
        differs = [n for n in names if _listed(self, n) != _listed(other, n)]
        shape = lambda data: (data.example_shape, len(data.train), len(data.test))
        differs += ["shape"] * (shape(self) != shape(other))
        for name in ("x_scaling", "y_scaling"):
            ours, theirs = getattr(self, name), getattr(other, name)
            if (ours is None) != (theirs is None) or not (
                ours is None or ours.is_close(theirs)
            ):
                differs.append(name)
        if self.clock is not None and other.clock is not None:
            differs += ["clock"] * (not self.clock.is_close(other.clock))
        if differs:
            raise DataError(
                f"{self.name} is not read as it was when this run learned from it "
                f"(its {differs[0]} differs): put back the files of then, use the "
                "version that trained it, or train again."
            )

    def with_validation(self, fraction: float = 0.1, *, seed: int = 0) -> "Data":
        """Hold a part of the training rows out, and standardise by the others alone.

        Args:
            fraction: of the training rows, between 0 and 1; the same of each class.
            seed: decides which rows.

        Returns:
            Data whose `train` has lost the rows of `validation`. A fitted scaling is
            fitted again, and the test rows follow it.

        Raises:
            DataError: for a fraction that cannot be, or a class too small to split.
        """
        self._refuse_streamed("with_validation")
        if self.validation is not None:
            raise DataError(
                f"{self.name} has {len(self.validation)} validation rows already: "
                "hold rows out of the data as they were loaded."
            )
        labels = None if self.num_classes is None else self.train.y
        kept, held = hold_out(
            len(self.train),
            fraction,
            seed=seed,
            labels=labels,
            class_names=self.class_names,
        )
        return self.standardised_again(
            self.train.rows(kept), validation=self.train.rows(held), test=self.test
        )

    def with_gap(self, feature: int) -> "Data":
        """The middle third of a feature for the test, its outer thirds for training.

        What a model says between its training rows, where it should know less (Foong,
        Li, Hernández-Lobato & Turner, 2019, "In-Between Uncertainty in Bayesian Neural
        Networks"). Training and test rows are dealt anew; rows of one value go together
        as they were ordered.

        Args:
            feature: a column of `x`, counted from 0.

        Raises:
            DataError: for rows that are no vectors, a column that is not there, or too
                few rows.
        """
        self._refuse_streamed("with_gap")
        if len(self.example_shape) != 1:
            raise DataError(
                f"{self.name} has examples of shape {self.example_shape}: a gap is one "
                "of a column of a table."
            )
        if not 0 <= feature < self.example_shape[0]:
            raise DataError(
                f"{self.name} has {self.example_shape[0]} features, and none of number "
                f"{feature}: count from 0."
            )
        parts = [self.train, self.test]
        parts += [] if self.validation is None else [self.validation]
        x, y = (np.concatenate([getattr(p, n) for p in parts]) for n in ("x", "y"))
        order = np.argsort(x[:, feature], kind="stable")
        third = len(order) // 3
        if third == 0:
            raise DataError(f"{self.name} has {len(order)} rows: a gap takes three.")
        inner, outer = order[third:-third], np.r_[order[:third], order[-third:]]
        every = Split(x, y)
        data = self.standardised_again(every.rows(outer), test=every.rows(inner))
        return dataclasses.replace(data, test_names=())

    def _refuse_streamed(self, method: str) -> None:
        """Refuse what takes all training rows at once, where these are on disk."""
        if isinstance(self.train, Streamed):
            text = "{} stays on disk, and `{}` takes all rows at once: {}."
            remedy = Choice(
                "hold rows out as they are loaded, by `validation_fraction`",
                "hold rows out with {validation_fraction}",
            )
            raise DataError(Sentence(text, self.name, method, remedy))

    def standardised_again(
        self, train: Split, *, test: Split, validation: Split | None = None
    ) -> "Data":
        """The same data with these rows, standardised by the training rows among them.

        A fitted scaling is fitted again, and all rows follow it; one that was given
        stays.

        Args:
            train: some of the training rows, as they are in `train`.
            test: some of the test rows, as they are in `test`.
            validation: rows held out of training, if there are any.
        """
        x_scaling, y_scaling = self.x_scaling, self.y_scaling
        change_x = change_y = lambda rows: rows
        if x_scaling is not None and x_scaling.axes is not None:
            second = Standardisation.fit(train.x, x_scaling.axes)
            x_scaling, change_x = x_scaling.then(second), second.apply
        if y_scaling is not None and y_scaling.axes is not None:
            second = Standardisation.fit(train.y, y_scaling.axes)
            y_scaling, change_y = y_scaling.then(second), second.apply
        change = lambda split: Split(change_x(split.x), change_y(split.y))
        return dataclasses.replace(
            self,
            train=change(train),
            validation=None if validation is None else change(validation),
            test=change(test),
            x_scaling=x_scaling,
            y_scaling=y_scaling,
        )


def _listed(data: Data, name: str) -> object:
    value = getattr(data, name)
    return list(value) if isinstance(value, list | tuple) else value


def raw_rows(
    data: Data,
) -> tuple[Shaped[np.ndarray, "rows features"], Shaped[np.ndarray, "rows ..."]]:
    """All rows, those of the test last, in the units that they came in.

    Args:
        data: of vectors or images; each example becomes a row of numbers.

    Returns:
        Features, and class numbers or targets.
    """
    splits = [data.train, data.validation, data.test]
    kept = [split for split in splits if split is not None]
    x = np.concatenate([np.asarray(split.x) for split in kept])
    y = np.concatenate([np.asarray(split.y) for split in kept])
    x = x if data.x_scaling is None else data.x_scaling.undo(x)
    y = y if data.y_scaling is None else data.y_scaling.undo(y)
    return x.reshape(len(x), -1), y
