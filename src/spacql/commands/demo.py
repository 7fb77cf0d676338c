"""`spacql demo`."""

from pathlib import Path


def demo(out: Path = Path("runs/demo"), rounds: int = 300, seed: int = 0) -> None:
    """Make data, train SPaCQL on it, score it, draw it: the whole way in minutes.

    Example: spacql demo --out runs/demo

    Args:
        out: Folder for the run; an older demo in it is replaced.
        rounds: Training rounds; 2,000 is the published number.
        seed: Seed of the training.
    """
    raise NotImplementedError
