"""The systems of the paper's table and its related work."""
