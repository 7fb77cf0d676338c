"""From a log to a policy that can be trusted, without a simulator: `spacql.fit`."""

from spacql.fitting.pipeline import Fit as Fit
from spacql.fitting.pipeline import fit as fit
