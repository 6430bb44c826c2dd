"""ONNX Runtime in a process of its own: values over, files loaded and run, answers and failures back."""
