"""The report: one HTML file that shows what was learnt, how good it is, and how to repeat it."""

from spacql.report.page import report as report
from spacql.report.page import write as write
from spacql.report.subject import Section as Section
