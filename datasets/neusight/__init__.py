"""NeuSight's operator latencies on NVIDIA and AMD GPUs."""
