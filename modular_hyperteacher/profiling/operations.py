"""Counts the operations that a compiled program starts in an outer step.

XLA fuses a program into operations: thunks on a CPU, kernels on a GPU. If each
does little, a step's time depends on their number rather than on its FLOPs.
"""

from collections.abc import Mapping
import re

import jax

# `name (arguments) -> result {` opens a computation.
_COMPUTATION = re.compile(r'^(ENTRY )?%?(\S+) \(.*\{$')
_INSTRUCTION = re.compile(r'^\s+(?:ROOT )?%?\S+ = .*?[\])}] ([a-z][\w-]*)\(')
_CALLED = re.compile(
    r'(?:body|to_apply|(?:branch|true|false)_computations?)='
    r'(\{.*?\}|%?[\w.-]+)'
)
_NAME = re.compile(r'[\w.-]+')
_TRIP_COUNT = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
# These only name or reinterpret memory.
_FREE = ('parameter', 'constant', 'tuple', 'get-tuple-element', 'bitcast')


def count(program: jax.stages.Compiled) -> int | None:
  """Returns the operations that a program starts.

  The body of a loop counts once per iteration. It counts once if the number of
  iterations is not known at compile time, as with outer steps. A conditional
  counts its longest branch. None if the platform does not show its programs.
  """
  text = program.as_text()
  if text is None:
    return None
  computations: dict[str, list[str]] = {}
  lines: list[str] = []
  entry = ''
  for line in text.splitlines():
    if opened := _COMPUTATION.match(line):
      lines = computations.setdefault(opened[2], [])
      entry = opened[2] if opened[1] else entry
    else:
      lines.append(line)
  return _count(computations, entry)


def _count(computations: Mapping[str, list[str]], name: str) -> int:
  total = 0
  for line in computations[name]:
    match = _INSTRUCTION.match(line)
    if match is None or match[1] in _FREE:
      continue
    if match[1] not in ('while', 'call', 'conditional'):
      total += 1
      continue
    called = _NAME.findall(' '.join(_CALLED.findall(line)))
    trips = _TRIP_COUNT.search(line)
    total += int(trips[1] if trips else 1) * max(
        _count(computations, one) for one in called
    )
  return total
