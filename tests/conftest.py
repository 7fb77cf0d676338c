"""Tests compute on one thread, as the commands do."""

import os

from spacql.threads import one_thread

os.environ.update(one_thread(os.environ))
