"""From Python: export, call, read the report, catch a refusal."""

import torch
from model import Leaves, Net

import trueport

program = trueport.export(Net(), (torch.randn(2, 3),), "net.onnx", dynamic_shapes={"x": {0: "batch"}})
x = torch.randn(7, 3)
print("equal on another batch:", torch.allclose(program(x), Net()(x), atol=1e-6))
print("checked on", len(program.report.checks), "inputs")
program.report.save("report.html")

try:
    trueport.export(Leaves(), (x,), "leaves.onnx")
except trueport.ExportError as refused:
    for found in refused.diagnostics:
        print(found.code, "at line", found.where.line)
