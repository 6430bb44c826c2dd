"""What code does to objects, containers and tensors around it: seen, undone, and told."""
