"""Logged behaviour: what a dataset is, how it is stored, made, imported and looked at."""

from spacql.data.dataset import Batch as Batch
from spacql.data.dataset import Dataset as Dataset
from spacql.data.storage import DatasetWriter as DatasetWriter
from spacql.data.storage import load_dataset as load_dataset
from spacql.data.storage import save_dataset as save_dataset
