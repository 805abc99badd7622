"""One safe file: no pickle, checksummed, whole or refused."""

from tensorlace.model_file.files import describe, load, save

__all__ = ["describe", "load", "save"]
