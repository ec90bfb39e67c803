"""Numbers as text."""


def number(value: float) -> str:
  """Returns three decimals, or two digits if the number is below 0.001."""
  return f'{value:.1e}' if 0 < abs(value) < 1e-3 else f'{value:.3f}'
