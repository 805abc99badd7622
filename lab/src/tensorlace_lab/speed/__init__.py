"""Measurements: ratios within one run, kept in results/bench/ with the command that made them."""
