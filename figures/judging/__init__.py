"""When does a claim hold? Samples, comparisons, tests and verdicts."""
