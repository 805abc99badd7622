"""The laboratory of tensorlace: compared systems, the paper's experiments, measurements."""
