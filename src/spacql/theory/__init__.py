"""The paper's theory on finite Dec-MDPs, solved exactly.

Every lemma, theorem and proposition is a function that returns both of its sides
(:class:`~spacql.theory.check.Check`). `battery.run` tries all of them on random and named
instances; `counterexamples` holds the readings of the paper that fail, with a small instance each.
"""
