"""What a name may hold in a trace that no value of ONNX is: one of several things, None or not, text, a conflict."""
