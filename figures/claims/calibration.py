"""Error rates and power of the verdicts, by simulation.

  python -m figures.claims.calibration

Prints the tables of docs/verdicts.md: how often simulated claims of one and of
four comparisons are supported or contradicted, and how often a claim at its
bound is, if seeds are added. Values are normal over seeds.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from figures.claims import paired_t
from figures.plotting import tables

SEEDS = (3, 5, 12)
COMPARISONS = (1, 4)
EFFECTS = (-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0)  # In standard deviations.
ADDED = ((5,), (3, 5), (5, 12), (3, 12), (3, 5, 12))
_SHARED = 0.5  # Share of variance that comparisons of a claim share.


class Rates(NamedTuple):
  """Shares of verdicts; the others are UNDECIDED."""

  supported: float
  contradicted: float


def simulate(
    effects: list[float], *num_seeds: int, num_claims: int = 20_000
) -> Rates:
  """Returns how often a claim is supported and contradicted.

  Args:
    effects: true effect minus bound of each comparison, in standard deviations
      over seeds.
    *num_seeds: seeds per claim. If several, the claim is tested with the first
      number; seeds are added, up to the next, for as long as it is UNDECIDED.
    num_claims: number of simulated claims.
  """
  rng = np.random.default_rng(0)
  shape = num_claims, num_seeds[-1]
  shared = rng.standard_normal((*shape, 1)) * _SHARED**0.5
  own = rng.standard_normal((*shape, len(effects))) * (1 - _SHARED) ** 0.5
  every = np.array(effects) + shared + own
  supported = np.zeros(num_claims, bool)
  contradicted = np.zeros(num_claims, bool)
  for number in num_seeds:
    values = every[:, :number]
    t = values.mean(1) / (values.std(1, ddof=1) / number**0.5)
    undecided = ~(supported | contradicted)
    holds = paired_t.holds(t, number).all(-1)
    is_reversed = paired_t.is_reversed(t, number).any(-1)
    supported |= undecided & holds
    contradicted |= undecided & is_reversed & ~holds
  return Rates(supported.mean(), contradicted.mean())


def make_table() -> pd.DataFrame:
  """Returns a row per true effect, the same in all comparisons of a claim."""
  rows = []
  for effect in EFFECTS:
    row: dict[str, float | str] = {'true effect': f'{effect:g}'}
    for number in COMPARISONS:
      for num_seeds in SEEDS:
        rates = simulate([effect] * number, num_seeds)
        name = f'{number} comp., {num_seeds} seeds'
        row[name] = f'{rates.supported:.0%} / {rates.contradicted:.0%}'
    rows.append(row)
  return pd.DataFrame(rows)


def make_added_table() -> pd.DataFrame:
  """Returns a row per way to add seeds, for one comparison at its bound."""
  return pd.DataFrame([
      {
          'seeds': ', then '.join(map(str, num_seeds)),
          **{
              name.upper(): f'{rate:.1%}'
              for name, rate in simulate([0.0], *num_seeds)._asdict().items()
          },
      }
      for num_seeds in ADDED
  ])


if __name__ == '__main__':
  print(tables.to_markdown(make_table()))
  print(tables.to_markdown(make_added_table()), end='')
