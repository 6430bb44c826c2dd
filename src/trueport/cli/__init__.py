"""The command line. Rooms that import torch are imported inside the commands: help and explain answer at once."""
