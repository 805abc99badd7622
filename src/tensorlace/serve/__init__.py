"""A fitted model behind HTTP: the Open Inference Protocol, and ``/predict`` for people.

Imports from: columns, machines.
"""

from tensorlace.serve.app import create_app
from tensorlace.serve.server import serve

__all__ = ["create_app", "serve"]
