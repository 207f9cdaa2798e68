"""Which runs to make next: space-filling first, then what is worth its cost, and when to stop.

propose(observations or domains, n)   the next n runs as a table: a column a domain, why, and their size
worth(observations, law)              what n more runs are expected to gain, with an interval, and whether to stop
campaign(measure, domains, ...)       propose, measure, fit and again, until runs are spent or not worth it
"""
