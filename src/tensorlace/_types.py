"""Types of arrays."""

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Mask"]

Array = npt.NDArray[np.float64]


Mask = npt.NDArray[np.bool_]
