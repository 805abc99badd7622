"""What a model file says of its fit, for people and programs; loading does not need it."""

import math
from typing import Any

from tensorlace._version import __version__

__all__ = ["facts"]


def facts(model: Any) -> dict[str, Any]:
    """Plain data about a fitted estimator: what it is, how sure, and how it did on unseen rows."""
    seen = model.check_
    held_out: dict[str, Any] | None = None
    if seen is not None:
        names = ("n_rows", "log_score", "expected_log_score", "bias", "dispersion", "p_value")
        held_out = {name: _finite(getattr(seen, name)) for name in names}
        held_out |= {"levels": list(seen.levels), "coverage": list(seen.coverage)}
        held_out |= {"contradicted": bool(seen.contradicted), "message": seen.message}
    return {
        "tensorlace": __version__,
        "n_rows": model.n_rows_,
        "log_evidence": _finite(model.log_evidence_),
        "noise_std": _finite(model.noise_precision_**-0.5),
        "noise": model.noise_.kind,
        "held_out": held_out,
        "calibrated": model.calibration_ is not None,
        "columns": [[name, repr(kind)] for name, kind in model.kinds_.items()],
    }


def _finite(x: Any) -> float | None:
    """For JSON, which knows no other numbers."""
    return float(x) if math.isfinite(x) else None
