"""Region graph to ONNX: `lower(graph, opset) -> Lowered`."""
