"""A fixed model with or without tails: asked for, or where the data ask for them.

Where they do, and nothing else is wrong than the rows that a fit with tails distrusts, the model is
fitted again by least squares to all others: one wild row then leaves no other trace.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tensorlace._types import Array
from tensorlace.fitting.config import Config
from tensorlace.fitting.fit_machines import fit_machines
from tensorlace.fitting.sound_rows import present, sound_rows
from tensorlace.likelihoods.student import (
    DISTRUSTED,
    furthest,
    gain_of_tails,
    row_weights,
    size_counts,
)
from tensorlace.machines.distrusted import DistrustedRows, Judge, distrusted_of
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.noise import Noise
from tensorlace.sources import Chunk, Table

__all__ = [
    "MOST_DISTRUSTED",
    "WILD",
    "asks_for_tails",
    "distrusted_rows",
    "dominated",
    "few_left_out",
    "fit_ensemble",
    "judge_of_wild_rows",
    "more_evidence",
]

LEAST_GAIN = 10.0
"""Nats by which Student's t must describe residuals better than a normal before a fit with tails is
tried, and by which the evidence must then be better. decisions.md#a-fit-with-tails"""

LEAST_GAIN_PER_ROW = 0.03
"""The same for each row: Student's t of 5 degrees of freedom is as far from a normal. What is
nearer hardly moves a fit. decisions.md#a-fit-with-tails"""

LARGEST_SHARE = 0.1
"""Share of the variance of the target in a single row from which a fit with tails is tried whatever
residuals look like: such a row can bend a fit until nothing is wrong with it.
decisions.md#a-fit-with-tails"""

LEAST_STANDARD = 6.0
"""Standard deviations that such a row must be away, besides: of few rows each has a large share.
decisions.md#a-fit-with-tails"""

LARGEST_SHIFT = 0.1
"""Most that trusted rows may lie to one side of a fit with tails on average, in units of their
standard deviation: noise that is skewed has no wild rows, and its mean is not where its core is.
decisions.md#a-fit-with-tails"""

MOST_DISTRUSTED = 0.05
"""Largest share of distrusted rows: where there are more of them, it is the noise that varies, and
they are no mistakes. decisions.md#a-fit-with-tails"""

WILD = 15.0
"""Standard deviations of the core that some row must be away: what a model cannot follow has heavy
tails as well, but no such row. decisions.md#a-fit-with-tails"""

NEAR = 0.5
"""How far away, in units of `WILD`, the others may be where wild rows are left out: a gap between
them tells mistakes from noise with tails. decisions.md#a-fit-with-tails"""

MOST_LEFT_OUT = 0.005
"""Largest share of rows that are left out, if it is not one row; intervals do not count them.
decisions.md#a-fit-with-tails"""

_ERRORS = 3.0
"""Standard errors that such a shift must exceed, besides."""


def fit_ensemble(
    config: Config,
    table: Table,
    *,
    tails: bool | None,
    seeds: Sequence[int],
    checkpoint: Path | None = None,
    threads: int = 1,
    **how: Any,
) -> tuple[Ensemble, Judge | None]:
    """Fit one machine per seed; their equal mixture, with the noise that the fit was made with.

    With it comes who has distrusted rows, None if nobody has.

    Parameters
    ----------
    config : Config
        Without tails.
    table : Table
    tails : bool or None
        Whether rows are reweighted by Student's t. None: if residuals of a fit without have tails
        that a normal has not, and a fit with them has more evidence.
    seeds, checkpoint, threads, **how
        See `fit_machines`.
    """
    given: dict[str, Any] = {"seeds": seeds, "threads": threads, **how}
    heavy = replace(config, tails=True)
    if tails:
        robust = _mixture(fit_machines(heavy, table, checkpoint=checkpoint, **given))
        return robust, Judge(robust)
    plain = fit_machines(config, table, checkpoint=checkpoint, **given)
    if tails is not None or not config.likelihood.squared:
        return _mixture(plain), None
    if not asks_for_tails(plain, table, threads=threads):
        return _mixture(plain), None

    def path(ending: str) -> Path | None:
        return None if checkpoint is None else checkpoint.with_name(f"{checkpoint.name}.{ending}")

    machines = fit_machines(heavy, table, checkpoint=path("tails"), **given)
    if not more_evidence(machines, plain, table, threads):
        return _mixture(plain), None
    robust = _mixture(machines)
    judge = judge_of_wild_rows(robust, WILD)
    sound = sound_rows(table, judge)
    if not few_left_out(sound, table, threads):
        return robust, Judge(robust)
    again = fit_machines(config, sound, checkpoint=path("sound"), **given)
    if asks_for_tails(again, sound, wild=NEAR * WILD, threads=threads):
        return robust, Judge(robust)
    return _mixture(again), judge


def judge_of_wild_rows(robust: Ensemble, wild: float) -> Judge:
    """Who distrusts rows ``wild`` standard deviations of the core away."""
    degrees = [machine.fit.degrees for machine in robust.machines]
    weights = row_weights(np.array(wild * wild), float(np.exp(np.mean(np.log(degrees)))))
    return Judge(robust, float(weights))


def few_left_out(sound: Table, table: Table, threads: int = 1) -> bool:
    """Whether hardly any of the rows of a table have no weight in another."""
    left, every = (float(t.reduce(_weight, np.add, threads=threads)) for t in (sound, table))
    return left >= every - max(1.0, MOST_LEFT_OUT * every)


def _weight(chunk: Chunk) -> Array:
    return np.array(chunk.n_rows if chunk.weight is None else chunk.weight.sum(), dtype=np.float64)


def distrusted_rows(judge: Judge, table: Table, threads: int = 1) -> DistrustedRows:
    """Rows of a table that a fit with tails distrusts, in one pass."""
    return table.reduce(partial(_distrusted, judge), DistrustedRows.__add__, threads=threads)


def _distrusted(judge: Judge, chunk: Chunk) -> DistrustedRows:
    return distrusted_of(judge, present(chunk).X, chunk.y, chunk.weight, chunk.first_row)


def _mixture(machines: tuple[KernelMachine, ...]) -> Ensemble:
    """Equal shares, and tails of the degrees of freedom that the fits have on average."""
    shares = np.full(len(machines), 1.0 / len(machines))
    degrees = np.array([machine.fit.degrees for machine in machines])
    if np.all(np.isinf(degrees)):
        return Ensemble(machines, shares)
    return Ensemble(machines, shares, noise=Noise(degrees=float(np.exp(np.mean(np.log(degrees))))))


def asks_for_tails(
    machines: Sequence[KernelMachine], table: Table, *, wild: float = WILD, threads: int = 1
) -> bool:
    """Whether residuals of fits without tails, or the target itself, ask for tails.

    Parameters
    ----------
    machines : sequence of KernelMachine
    table : Table
        What they were fitted to.
    wild : float
        Standard deviations of the core that some residual must be away, besides.
    threads : int
    """
    target = machines[0].target
    counts = table.reduce(partial(_sizes, machines), np.add, threads=threads)
    n = float(counts[0].sum())
    ends = np.array([target.frame.low, target.frame.high])
    if _dominates(float(np.abs(target(ends)).max()), n):
        return True
    gain = float(np.mean([gain_of_tails(count) for count in counts]))
    far = float(np.mean([furthest(count) for count in counts]))
    return gain * n > LEAST_GAIN and gain > LEAST_GAIN_PER_ROW and far > wild


def dominated(y: Array, weight: Array | None = None) -> bool:
    """Whether a single one of targets (n,) has a large share of their variance.

    >>> y = np.random.default_rng(0).standard_normal(100)
    >>> dominated(y), dominated(np.append(y, 1e6))
    (False, True)
    """
    mean = np.average(y, weights=weight)
    variance = np.average((y - mean) ** 2, weights=weight)
    n = float(len(y) if weight is None else weight.sum())
    if not variance > 0.0:
        return False
    return _dominates(float(np.abs(y - mean).max() / np.sqrt(variance)), n)


def _dominates(far: float, n: float) -> bool:
    return far > LEAST_STANDARD and far**2 > LARGEST_SHARE * n


def _sizes(machines: Sequence[KernelMachine], chunk: Chunk) -> Array:
    """How many residuals of each machine have which size, (M, K)."""
    return np.stack(
        [size_counts(m.fit.beta * _residuals(m, chunk) ** 2, chunk.weight) for m in machines]
    )


def _residuals(machine: KernelMachine, chunk: Chunk) -> Array:
    """Of n rows, in units of the scale of the target; zero for rows that are not there."""
    residual = (chunk.y - machine.mean(present(chunk).X)) / machine.target.scale
    return residual if chunk.weight is None else np.where(chunk.weight > 0.0, residual, 0.0)


def more_evidence(
    heavy: Sequence[KernelMachine],
    plain: Sequence[KernelMachine],
    table: Table,
    threads: int = 1,
) -> bool:
    """Whether fits with tails have clearly more evidence, and reason to.

    Evidence is of y, whatever it was scaled by. Under noise that is skewed, trusted rows lie to one
    side of a fit with tails: it is not near their mean. Under noise that varies, many rows are
    distrusted, and it is near the others only.
    """
    sums = table.reduce(partial(_trusted_sums, heavy), np.add, threads=threads)
    rows, n = sums[:, 0], float(sums[0, 3])

    def evidence(machines: Sequence[KernelMachine]) -> float:
        return float(np.mean([m.fit.log_evidence - n * np.log(m.target.scale) for m in machines]))

    with np.errstate(invalid="ignore", divide="ignore"):  # a flat prior has no evidence
        gain = evidence(heavy) - evidence(plain)
        shift = np.abs(sums[:, 1]) / np.sqrt(rows * sums[:, 2])
    centred = np.median(shift - np.maximum(LARGEST_SHIFT, _ERRORS / np.sqrt(rows))) <= 0.0
    few = np.median(rows) >= (1.0 - MOST_DISTRUSTED) * n
    return bool(centred and few) and gain > max(LEAST_GAIN, LEAST_GAIN_PER_ROW * n)


def _trusted_sums(machines: Sequence[KernelMachine], chunk: Chunk) -> Array:
    """Of trusted rows number, sum and sum of squares of residuals; number of all; (M, 4)."""
    sums = []
    for machine in machines:
        r = _residuals(machine, chunk)
        trusted = row_weights(machine.fit.beta * r * r, machine.fit.degrees) >= DISTRUSTED
        every = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
        w = trusted * every
        sums.append([w.sum(), w @ r, w @ (r * r), every.sum()])
    return np.array(sums)
