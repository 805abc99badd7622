"""Figures of the report draw the numbers that they are given."""

import re

import numpy as np
import pandas as pd
import pytest

from tensorlace.displays.effects import axis_limits
from tensorlace.report import figures
from tests.helpers.reported import FRAME, KINDS, Y, fit


@pytest.fixture(scope="module")
def effects():
    model = fit(FRAME, Y, columns=KINDS, n_members=2)
    return [model.partial_effects(d) for d in range(FRAME.shape[1])]


def test_effects_share_an_axis_and_show_where_rows_are(effects):
    limits = axis_limits(effects)
    axes = set()
    for e in effects:
        svg = figures.effect(e, limits)
        axes.add(tuple(re.findall(r'text-anchor="end" x="50" y="[\d.]+">([^<]+)<', svg)))
        assert ('class="rug"' in svg) == (not e.discrete and len(e) > 2)
    assert len(axes) == 1


def test_ticks_are_within_the_curve(effects):
    e = next(e for e in effects if not e.discrete and e.grid.dtype.kind == "f")
    svg = figures.effect(e, axis_limits(effects))
    path = re.search(r'class="rug" d="([^"]*)"', svg)[1]
    places = np.array([float(x) for x in re.findall(r"M([\d.]+) ", path)])
    inside = e.rows[(e.rows >= e.grid[0]) & (e.rows <= e.grid[-1])]
    expected = 56 + (inside - e.grid[0]) / (e.grid[-1] - e.grid[0]) * (460 - 56 - 12)
    np.testing.assert_allclose(places, np.unique(expected.round(1)), atol=0.051)


def test_dates_have_ticks_too(effects):
    (dated,) = (e for e in effects if e.grid.dtype.kind == "M")
    assert dated.column == "day"
    assert dated.rows.dtype.kind == "M"
    assert pd.Timestamp(dated.rows[0]) == FRAME["day"].min()
    assert FRAME["day"].min() <= pd.Timestamp(dated.grid[0])
