"""The options of a run on sequences."""

import dataclasses
from typing import Literal

RecognitionName = Literal["auto", "gru", "first-frames", "first-frames-gru", "none"]
LatentPriorName = Literal["net", "linear", "ou"]
LatentNoiseName = Literal["net", "learned", "fixed"]
HoldOutName = Literal["series", "time"]
TimeUnitName = Literal["seconds", "minutes", "hours", "days", "weeks"]


@dataclasses.dataclass(frozen=True)
class SeriesOptions:
    """Sequences: of a table with a row for each time, and how they are tested.

    Attributes:
        time: the column of times, numbers or ISO dates.
        series: the column that tells series apart; leave it out if there is only one.
        value: the column or columns of values; all others with numbers by default. An
            empty cell was not observed.
        time_unit: of times that are dates.
        time_scale: the model's unit of time, in units of the column (of --time-unit for
            dates); ten times the median gap by default.
        hold_out_by: test on whole series, or on the end of each; by default on series
            where there are several.
        test_fraction: of the series, or of each series' times, for the test.
        test_seen: of each test series' observed times, what the model is shown; it is
            asked for the rest. Where the test rows do not say themselves; with
            --recognition first-frames or first-frames-gru it is shown the frames.
        start_every: learn each training series again from every so many of its
            points on, up to two thirds of it; 0 learns it from its first alone. For a
            motion that does not depend on when it is watched.
        tempos: learn each training series at these tempos, such as 0.9 1 1.1, for
            motions that may be faster or slower; at its own by default.
        lengths: learn each training series up to each of these numbers of its points,
            such as 50 120 300, so that near points count more; whole by default.
        input_noise: standard deviation of noise added, in training, to what the
            recognition sees, in units of the values as the model has them.
    """

    time: str | None = None
    series: str | None = None
    value: tuple[str, ...] = ()
    time_unit: TimeUnitName = "days"
    time_scale: float | None = None
    hold_out_by: HoldOutName | None = None
    test_fraction: float = 0.2
    test_seen: float = 0.5
    start_every: int = 0
    tempos: tuple[float, ...] = ()
    lengths: tuple[int, ...] = ()
    input_noise: float = 0.0


@dataclasses.dataclass(frozen=True)
class LatentOptions:
    """The latent path of each sequence: for latent-sde and latent-ode.

    Attributes:
        latent_size: dimensions of the path z.
        recognition: what a series tells about its path: a recurrent network reads it
            (gru), a network sees its first points (first-frames), these say where the
            path begins and a recurrent network where it goes in training, to continue
            series from their first points (first-frames-gru), or nothing does, for
            a single series (none). auto is gru, but none for one series of up to 50
            times.
        frames: points that first-frames and first-frames-gru see first.
        hidden_size: hidden units of the recognition.
        context_size: numbers that it tells the posterior's drift.
        latent_prior: drift a priori: a network of z, linear, or Ornstein-Uhlenbeck.
        latent_noise: diffusion of z: a small network for each dimension, a learned
            number for each, or --sigma itself.
        max_noise: the largest that --latent-noise net can be.
        start_scale: standard deviation of z at the first time a priori.
        learn_start: train it, and the mean.
        start_drift: multiplies the last layer of the drift's network (the prior's, of
            latent-sde) at first. Over long times --activation softplus needs little.
        drift_sees_time: whether the posterior's drift sees the time itself.
        extrapolates_posterior: keep the posterior's drift past the last observation,
            where the prior's takes over otherwise.
        decoder_widths: hidden widths from z to the values; none is linear, identity
            takes z itself.
        substeps: of the solver, from one time of a series to the next.
    """

    latent_size: int = 4
    recognition: RecognitionName = "auto"
    frames: int = 3
    hidden_size: int = 64
    context_size: int = 16
    latent_prior: LatentPriorName = "net"
    latent_noise: LatentNoiseName = "net"
    max_noise: float = 1.0
    start_scale: float = 1.0
    learn_start: bool = False
    start_drift: float = 1.0
    drift_sees_time: bool = True
    extrapolates_posterior: bool = False
    decoder_widths: str = "none"
    substeps: int = 4
