"""Models for other runtimes: a fitted model as an ONNX graph that gives mean and std.

The graph takes rows as they come and needs nothing of Python: onnxruntime runs it from C++, C#,
Java or JavaScript. It computes in double precision what `predict` computes.
"""

from tensorlace.export.inputs import onnx_inputs
from tensorlace.export.onnx_model import save_onnx, to_onnx

__all__ = ["onnx_inputs", "save_onnx", "to_onnx"]
