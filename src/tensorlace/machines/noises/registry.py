"""The families of noise by name, in the order in which a search compares them.

A new one is a module beside this one with a class of noises and their family, and one line here.
"""

from collections.abc import Mapping

from tensorlace.machines.noises.family import NoiseFamily
from tensorlace.machines.noises.normal_student import NormalStudent

__all__ = ["NOISES"]

NOISES: Mapping[str, NoiseFamily] = {
    family.name: family
    for family in (
        NormalStudent("gaussian", heavy_tailed=False, varies=False),
        NormalStudent("student", heavy_tailed=True, varies=False),
        NormalStudent("varying", heavy_tailed=False, varies=True),
        NormalStudent("varying_student", heavy_tailed=True, varies=True),
    )
}
