"""Which candidates a search tries: small models in many styles, and larger ones in some."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from tensorlace.search.candidate import Candidate, Width
from tensorlace.search.cost_model import affordable
from tensorlace.search.settings import CandidateSettings, CostSettings

__all__ = ["enlarged", "plan"]


def plan(
    n_rows: float,
    width: Width,
    work: float,
    settings: CandidateSettings,
    costs: CostSettings,
    *,
    fits: float = 1.0,
    polynomials: bool = False,
    ceiling: float = inf,
) -> tuple[Candidate, ...]:
    """Candidates in order of promise, as many as the work allows by the cost model.

    Parameters
    ----------
    n_rows : float
        That each is fitted to.
    width : Width
    work : float
        Seconds of one thread.
    settings : CandidateSettings
    costs : CostSettings
    fits : float
        Fits per candidate.
    polynomials : bool
        Whether polynomials in all columns are among them.
    ceiling : float
        Seconds that only the first of all may exceed.
    """
    candidates = _ordered(settings)
    if polynomials:
        at = settings.parabolas_at
        candidates[at:at] = settings.polynomials
    chosen = affordable(
        *(candidates, n_rows, width, work, costs),
        fits=fits,
        at_least=settings.at_least,
        share=settings.largest_share,
        ceiling=ceiling,
    )
    # few rows cannot tell many models apart
    most = min(max(n_rows / settings.rows_per_candidate, settings.fewest), settings.most)
    return tuple(chosen[: int(most)])


def enlarged(
    best: Sequence[Candidate],
    factors: Sequence[tuple[float, float]],
    settings: CandidateSettings,
) -> list[Candidate]:
    """Larger models in the styles that did best, by factors on rank and basis size."""
    larger = []
    for rank_factor, basis_factor in factors:
        for c in best:
            rank = min(round(c.rank * rank_factor), max(settings.largest_rank, c.rank))
            n_basis = min(round(c.n_basis * basis_factor), max(settings.largest_basis, c.n_basis))
            n_basis = max(n_basis, min(settings.smallest_basis, c.n_basis))
            larger.append(replace(c, rank=rank, n_basis=n_basis))
    return [c for c in dict.fromkeys(larger) if c not in best]


def _ordered(settings: CandidateSettings) -> list[Candidate]:
    """Every candidate once; a small model in an unlikely style comes after a larger, likely one."""
    ranked = [
        (k + settings.style_penalty * j, k, style.of_size(rank, n_basis))
        for k, (rank, n_basis) in enumerate(settings.sizes)
        for j, style in enumerate(settings.styles)
    ]
    waves = [candidate for _, _, candidate in sorted(ranked, key=lambda entry: entry[:2])]
    candidates = [settings.constant, settings.lines, *waves]
    candidates.insert(settings.parabolas_at, settings.parabolas)
    return candidates
