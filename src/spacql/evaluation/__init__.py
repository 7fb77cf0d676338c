"""How good a policy is: scores against reference returns, with honest error bars."""

from spacql.evaluation.score import Evaluation as Evaluation
from spacql.evaluation.score import evaluate as evaluate
from spacql.evaluation.statistics import Summary as Summary
from spacql.evaluation.statistics import bootstrap_interval as bootstrap_interval
from spacql.evaluation.statistics import deviation as deviation
from spacql.evaluation.statistics import interquartile_mean as interquartile_mean
from spacql.evaluation.statistics import summarise as summarise
from spacql.reference import Reference as Reference
from spacql.reference import reference as reference
