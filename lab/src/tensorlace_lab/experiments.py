"""The experiments by name; a module is imported when its experiment is asked for."""

from importlib import import_module

from tensorlace_lab.measuring.runner import Experiment

__all__ = ["DEFAULT", "EARLIER", "NAMES", "PAPER", "SPEED", "experiment_named"]

PAPER = {
    "cubic": "paper.cubic:EXPERIMENT",
    "linearization": "paper.ablation:LINEARIZATION",
    "hessians": "paper.ablation:HESSIANS",
    "hessian-table": "paper.hessian_table:EXPERIMENT",
    "complexity": "paper.complexity:EXPERIMENT",
    "uci": "paper.uci:EXPERIMENT",
    "equal-size": "paper.equal_size:EXPERIMENT",
}
"""The tables and figures of the paper, and ours beside them."""

DEFAULT = {
    "quality": "default.quality:EXPERIMENT",
    "tables": "default.tables:EXPERIMENT",
    "simple": "default.simple:EXPERIMENT",
    "train": "default.train:EXPERIMENT",
    "trust": "trust.experiment:EXPERIMENT",
}
"""How the default does."""

EARLIER = {"trust-before": "trust.experiment:BEFORE"}
"""The same with an earlier library; on the page of the experiment that they are compared with."""

SPEED = {
    "sweep": "speed.sweep:EXPERIMENT",
    "first_fit": "speed.first_fit:EXPERIMENT",
    "scaling": "speed.scaling:EXPERIMENT",
    "predict": "speed.predict:EXPERIMENT",
    "peers": "speed.peers:EXPERIMENT",
    "airline": "speed.airline:EXPERIMENT",
    "gram": "speed.gram:EXPERIMENT",
    "passes": "speed.passes:EXPERIMENT",
    "budget": "speed.budget:EXPERIMENT",
}
"""Seconds and memory, in the order of their page."""

_WHERE = {**PAPER, **DEFAULT, **EARLIER, **SPEED}
NAMES = tuple(_WHERE)


def experiment_named(name: str) -> Experiment:
    """Look up an experiment."""
    module, attribute = _WHERE[name].split(":")
    found: Experiment = getattr(import_module(f"tensorlace_lab.{module}"), attribute)
    return found
