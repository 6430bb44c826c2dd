"""What torch.nn.functional has: activations, convolutions, pools, norms, attention, recurrences, images."""
