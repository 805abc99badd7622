"""The families of noise by name, in the order in which a search compares them.

A new one is a module beside this one with a class of noises and their family, and one line here.
"""

from tensorlace._registry import Registry
from tensorlace.machines.noises.family import NoiseFamily
from tensorlace.machines.noises.normal_student import NormalStudent

__all__ = ["NOISES"]

_FAMILIES = (
    NormalStudent("gaussian", heavy_tailed=False, varies=False),
    NormalStudent("student", heavy_tailed=True, varies=False),
    NormalStudent("varying", heavy_tailed=False, varies=True),
    NormalStudent("varying_student", heavy_tailed=True, varies=True),
)

NOISES: Registry[NoiseFamily] = Registry("noise", {family.name: family for family in _FAMILIES})
"""Ways in which targets can scatter around their mean."""
