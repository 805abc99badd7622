"""A fitted model behind HTTP: the Open Inference Protocol for machines, ``/predict`` for people.

The model is loaded once; a request carries values and nothing else: no path, URL or upload.
"""

from tensorlace.errors import InputError

try:
    import fastapi  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as error:
    raise InputError(f"the server needs {error.name}: pip install 'tensorlace[serve]'") from error

from tensorlace.serve.app import create_app
from tensorlace.serve.server import serve

__all__ = ["create_app", "serve"]
