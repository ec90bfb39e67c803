"""Error rates and power of the verdicts, by simulation.

  python -m figures.judging.calibration

Prints the tables of docs/verdicts.md: how often simulated claims of one and of
four comparisons are supported or contradicted, and how often a claim at its
bound is, if seeds are added, or if what is compared is the best of several
choices. Values are normal over seeds.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.judging import paired_t
from modular_hyperteacher.figures.plotting import tables

SEEDS = (3, 5, 12)
COMPARISONS = (1, 4)
EFFECTS = (-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0)  # In standard deviations.
ADDED = ((5,), (3, 5), (5, 12), (3, 12), (3, 5, 12), (3, 5, 8, 12))
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
          **_texts(simulate([0.0], *num_seeds)),
      }
      for num_seeds in ADDED
  ])


def simulate_choice(num_choices: int, num_seeds: int) -> Rates:
  """Returns rates of "the best of several choices exceeds one more".

  All are equal. The best is chosen, for every seed, by the others.
  """
  rng = np.random.default_rng(0)
  t = []
  for _ in range(2_000):
    drawn = pd.DataFrame(rng.standard_normal((num_seeds, num_choices + 1)))
    best = comparisons.pick_on_other_seeds(drawn.iloc[:, :-1])
    gain = (best - drawn.iloc[:, -1]).to_numpy()
    t.append(gain.mean() / (gain.std(ddof=1) / num_seeds**0.5))
  # One comparison per claim.
  reversed_ = paired_t.is_reversed(np.array(t)[:, np.newaxis], num_seeds)
  return Rates(paired_t.holds(np.array(t), num_seeds).mean(), reversed_.mean())


def make_choice_table() -> pd.DataFrame:
  """Returns a row per number of choices and of seeds."""
  return pd.DataFrame([
      {'choices': number, 'seeds': num_seeds, **_texts(rates)}
      for number in (2, 7)
      for num_seeds in (5, 12)
      for rates in (simulate_choice(number, num_seeds),)
  ])


def _texts(rates: Rates) -> dict[str, str]:
  return {name.upper(): f'{rate:.1%}' for name, rate in rates._asdict().items()}


if __name__ == '__main__':
  print(tables.to_markdown(make_table()))
  print(tables.to_markdown(make_added_table()))
  print(tables.to_markdown(make_choice_table()), end='')
