"""`torch.onnx.export(` became `trueport.export(`; nothing else was changed."""

import torch
from model import Net

import trueport

trueport.export(
    Net(),
    (torch.randn(2, 3),),
    "net.onnx",
    input_names=["x"],
    output_names=["y"],
    dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}},
    opset_version=18,
)
print("written")
