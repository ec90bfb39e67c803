"""How many cases the fuzzers try, and which.

By default the same ones each time, so that a change is accepted or refused for
what it changed. `FUZZ_CASES=10000 pytest -m slow tests/fuzz` tries other,
random ones, as many for configs and for files.
"""

import os

import hypothesis

_NUM_CASES = os.environ.get('FUZZ_CASES')
FEW = hypothesis.settings(
    deadline=None,
    derandomize=True,
    max_examples=200,
    database=None,
    suppress_health_check=(
        hypothesis.HealthCheck.too_slow,
        hypothesis.HealthCheck.data_too_large,
        hypothesis.HealthCheck.large_base_example,
        hypothesis.HealthCheck.function_scoped_fixture,
    ),
)
FEWER = hypothesis.settings(FEW, max_examples=50)
MANY = hypothesis.settings(
    FEW, derandomize=not _NUM_CASES, max_examples=int(_NUM_CASES or 300)
)
