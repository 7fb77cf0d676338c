"""All doors, and what has to be there before the watch begins."""

import importlib

import hostile_doors
import hostile_fits
import hostile_logs
import hostile_runs

MODULES = (hostile_doors, hostile_logs, hostile_runs, hostile_fits)
DOORS = {name: door for module in MODULES for name, door in module.DOORS.items()}


def prepare() -> None:
    """Valid files; and libraries that make folders of their own, or start something, when they are
    first imported."""
    for name in ("matplotlib.figure", "onnxruntime", "pyarrow.parquet"):
        importlib.import_module(name)
    for module in MODULES:
        module.samples()
