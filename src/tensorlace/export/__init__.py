"""ONNX graphs that give mean and standard deviation from rows as they come.

Imports from: portable, kinds, columns, machines.
"""

from tensorlace.export.inputs import onnx_inputs
from tensorlace.export.onnx_model import save_onnx, to_onnx

__all__ = ["onnx_inputs", "save_onnx", "to_onnx"]
