"""The entry ``about`` of a model file: the fit in plain data. Loading does not read it."""

import math
from typing import Any

from tensorlace._version import __version__
from tensorlace.machines.fitted_model import FittedModel

__all__ = ["facts"]


def facts(model: FittedModel) -> dict[str, Any]:
    """Plain data about a fitted model: what it is, how sure, and how it did on unseen rows."""
    record = model.record
    seen = record.check
    held_out: dict[str, Any] | None = None
    if seen is not None:
        names = ("n_rows", "log_score", "expected_log_score", "bias", "dispersion", "p_value")
        held_out = {name: _finite(getattr(seen, name)) for name in names}
        held_out |= {"levels": list(seen.levels), "coverage": list(seen.coverage)}
        held_out |= {"contradicted": bool(seen.contradicted), "message": seen.message}
    return {
        "tensorlace": __version__,
        "n_rows": record.n_rows,
        "log_evidence": _finite(record.log_evidence),
        "noise_std": _finite(record.noise_precision**-0.5),
        "noise": model.noise.kind,
        "held_out": held_out,
        **({} if record.held_back is None else {"held_back": record.held_back.plain()}),
        "calibrated": model.calibration is not None,
        "columns": [[name, repr(kind)] for name, kind in model.kinds.items()],
    }


def _finite(x: Any) -> float | None:
    """The number, or None if it is not finite, as JSON has no such numbers."""
    return float(x) if math.isfinite(x) else None
