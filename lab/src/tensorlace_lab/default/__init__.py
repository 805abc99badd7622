"""How the default does on real tables."""
