"""What is in an ONNX file, whoever wrote it. Read without torch, without a runtime, and without the weights beside it.

A foreign file is not believed: nothing in it is run, none of its paths is opened, and what it is called is text.
"""
