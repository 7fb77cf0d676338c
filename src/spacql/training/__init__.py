"""Training: rounds in compiled chunks, checkpoints and resume, metrics, seeds in processes."""
