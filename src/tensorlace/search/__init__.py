"""``rank="auto"``: candidates, their cost, schedule, weights, noise and widths."""

__all__: list[str] = []
