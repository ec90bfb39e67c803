"""Steps take no longer than they did, relative to a fixed matrix product.

Select with -m benchmark; takes minutes. The figures compared with are those of
docs/performance.json; after a change that is meant to cost time, measure again:

  python -m modular_hyperteacher.performance --only=steps --tasks=16 --again
"""

import pytest

from modular_hyperteacher import performance
from modular_hyperteacher import provenance

_MOST = 1.3


@pytest.mark.benchmark
@pytest.mark.parametrize(
    'case', performance.guarded_cases(), ids=lambda case: case.name
)
def test_steps_are_not_much_slower_than_they_were(case):
  committed = performance.known().get(case.name)
  here = provenance.describe()['processor']
  if committed is None or committed['provenance']['processor'] != here:
    pytest.skip(f'{case.name}: nothing to compare with on {here}')
  measured = performance.measure(case, committed['num_tasks'], repeats=5)
  # Processor times: waiting for other processes does not count.
  ratio = measured['cpu_mu'] / committed['cpu_mu']
  assert ratio <= _MOST, f'{case.name} takes {ratio:.2f} times as long'
