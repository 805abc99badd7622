"""Pictures of fitted estimators, after scikit-learn's displays; they need the extra "plots".

``from_estimator`` and its like compute what is drawn and draw it; ``plot`` draws it again. The
axes are in ``ax_``, their figure in ``figure_``.
"""

from tensorlace.displays.coverage import CalibrationDisplay
from tensorlace.displays.effects import EffectsDisplay
from tensorlace.displays.predicted import PredictiveDisplay
from tensorlace.displays.spectrum import SpectrumDisplay

__all__ = ["CalibrationDisplay", "EffectsDisplay", "PredictiveDisplay", "SpectrumDisplay"]
