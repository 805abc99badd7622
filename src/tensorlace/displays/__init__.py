"""Displays of fitted estimators, after those of scikit-learn; they need the extra "plots".

Imports from: predictive, laplace, machines, explain.
"""

from tensorlace.displays.coverage import CalibrationDisplay
from tensorlace.displays.effects import EffectsDisplay
from tensorlace.displays.predicted import PredictiveDisplay
from tensorlace.displays.spectrum import SpectrumDisplay

__all__ = ["CalibrationDisplay", "EffectsDisplay", "PredictiveDisplay", "SpectrumDisplay"]
