"""The laboratory of tensorlace: compared systems, the paper's experiments, measurements.

Rooms, from low to high: datasets; systems; measuring; writing; paper, default, speed and trust;
experiments, where they have names; pages. ``python -m tensorlace_lab`` is the command.
"""

__all__: list[str] = []
