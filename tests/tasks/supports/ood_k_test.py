"""Held-out combinations of k modules, up to many modules in little memory."""

import math
import tracemalloc

import jax
import numpy as np
import pytest

from modular_hyperteacher.tasks.supports import splits as supports
from tests.helpers import small_supports


@pytest.fixture(scope='module')
def sixteen_modules() -> tuple[
    supports.TaskSupport,
    supports.SplitParams,
    dict[str, np.ndarray],
    dict[str, int],
]:
  """M = 16, K = 4: task support, parameters, 1000 draws per split, bytes.

  NumPy reports to tracemalloc, JAX's arrays are counted, and compiled code
  says how much it takes.
  """
  num_bytes, drawn = {}, {}
  before = sum(array.nbytes for array in jax.live_arrays())
  tracemalloc.start()
  made = supports.make(
      'random',
      num_modules=16,
      max_active=4,
      num_layers=2,
      fraction_ood=0.25,
      ood_ks=(1, 2, 4, 8, 16),
  )
  params = small_supports.init(made)
  keys = jax.random.split(jax.random.key(0), 1000)
  for split in ('train', 'ood_k4', 'ood_k8'):
    sample = jax.vmap(
        lambda params, key, split=split: made.sample(params, key, split),
        (None, 0),
    )
    compiled = jax.jit(sample).lower(params, keys).compile()
    memory = compiled.memory_analysis()
    if memory is not None:
      num_bytes[f'buffers of {split}'] = memory.temp_size_in_bytes
      num_bytes[f'code of {split}'] = memory.generated_code_size_in_bytes
    drawn[split] = np.asarray(compiled(params, keys))
  num_bytes['NumPy and Python'] = tracemalloc.get_traced_memory()[1]
  tracemalloc.stop()
  after = sum(array.nbytes for array in jax.live_arrays())
  num_bytes['JAX arrays'] = after - before
  return made, params, drawn, num_bytes


# OOD(K=k).


@pytest.mark.parametrize('seed', range(6))
def test_ood_k_of_random_support_against_brute_force(seed: int) -> None:
  made = small_supports.make(ood_ks=(1, 2, 3, 4))
  params = small_supports.init(made, seed)
  _, train = small_supports.members(made, params, 'train')
  ood, _ = small_supports.members(made, params, 'ood')
  for k in (1, 2):
    expected = set(
        small_supports.codes(ood[(ood.sum(-1) == k).all(-1)]).tolist()
    )
    assert made.count(params, f'ood_k{k}') == len(expected)
    if expected:
      masks, codes = small_supports.members(made, params, f'ood_k{k}')
      assert (masks.sum(-1) == k).all()
      assert codes == expected
      assert not codes & train
  for k in (3, 4):
    assert made.count(params, f'ood_k{k}') == math.comb(4, k) ** 2
    masks, codes = small_supports.members(made, params, f'ood_k{k}')
    assert (masks.sum(-1) == k).all()
    assert not codes & train


@pytest.mark.parametrize(
    'task_support, num_modules, max_active, num_layers, expected',
    [
        # Up to K, the last layer has the last module: C(M-1, k-1).
        ('non_compositional', 4, 2, 2, {1: 4 * 1, 2: 6 * 3, 4: 1}),
        ('non_compositional', 8, 3, 1, {1: 1, 2: 7, 4: 70, 8: 1}),
        # The two-hot ones of spec 2.5; above K all combinations.
        ('connected', 8, 2, 2, {1: 0, 2: 506, 4: 4900, 8: 1}),
        ('disconnected', 8, 2, 2, {1: 0, 2: 506, 4: 4900, 8: 1}),
        ('connected', 8, 2, 1, {1: 0, 2: 10, 4: 70, 8: 1}),
        ('disconnected', 8, 2, 1, {1: 0, 2: 10, 4: 70, 8: 1}),
    ],
)
def test_ood_k_of_fixed_supports(
    task_support: str,
    num_modules: int,
    max_active: int,
    num_layers: int,
    expected: dict[int, int],
) -> None:
  made = small_supports.make(task_support, num_modules, max_active, num_layers)
  params = small_supports.init(made)
  _, train = small_supports.members(made, params, 'train')
  _, ood = small_supports.members(made, params, 'ood')
  for k, size in expected.items():
    assert made.count(params, f'ood_k{k}') == size
    if size <= 1:
      continue
    masks, codes = small_supports.members(made, params, f'ood_k{k}')
    assert masks.shape[1:] == (num_layers, num_modules)
    assert (masks.sum(-1) == k).all()
    assert not codes & train
    assert k > max_active or codes <= ood


@pytest.mark.slow
def test_ood_k_of_a_random_support_too_large_to_list(
    sixteen_modules: tuple[
        supports.TaskSupport,
        supports.SplitParams,
        dict[str, np.ndarray],
        dict[str, int],
    ],
) -> None:
  """A quarter of the pairs of one-hots, of two-hots, ..."""
  made, params, drawn, _ = sixteen_modules
  for k in (1, 2, 4):
    num_exact = math.comb(16, k) ** 2
    sigma = math.sqrt(num_exact * 0.25 * 0.75)
    size = made.count(params, f'ood_k{k}')
    assert abs(size - num_exact / 4) < 5 * sigma
  masks = drawn['ood_k4']
  assert (masks.sum(-1) == 4).all()
  assert not np.isin(
      small_supports.codes(masks), small_supports.codes(drawn['train'])
  ).any()
  # Above K: any combination; 8 * 8 / 16 modules are shared on average.
  assert made.count(params, 'ood_k8') == math.comb(16, 8) ** 2
  masks = drawn['ood_k8']
  assert (masks.sum(-1) == 8).all()
  shared = (masks[:, 0] & masks[:, 1]).sum(-1).mean()
  assert abs(shared - 4) < 5 * math.sqrt(2 / len(masks))


@pytest.mark.parametrize('task_support', ['connected', 'disconnected'])
def test_a_draw_from_an_empty_set_returns(task_support: str) -> None:
  made = small_supports.make(task_support, 8, 2, 2)
  params = small_supports.init(made)
  assert made.count(params, 'ood_k1') == 0
  assert small_supports.draw(made, params, 'ood_k1').shape == (
      small_supports.NUM_DRAWS,
      2,
      8,
  )


def test_the_only_combination_of_all_modules_is_held_out_or_not() -> None:
  """D14: M = K = 4, k = 4 is one combination; mostly it is trained on."""
  made = small_supports.make(max_active=4, ood_ks=(4,))
  sizes = []
  for seed in range(20):
    params = small_supports.init(made, seed)
    sizes.append(made.count(params, 'ood_k4'))
    drawn = small_supports.draw(made, params, 'ood_k4')
    assert drawn.shape == (small_supports.NUM_DRAWS, 2, 4)
    # One of 169 training combinations is missed with probability e^-12.
    assert (
        small_supports.draw(made, params, 'train').all((-1, -2)).any()
        != sizes[-1]
    )
    assert drawn.all() or not sizes[-1]
  assert set(sizes) == {0, 1}


# Memory.


@pytest.mark.slow
def test_sixteen_modules_fit_into_little_memory(
    sixteen_modules: tuple[
        supports.TaskSupport,
        supports.SplitParams,
        dict[str, np.ndarray],
        dict[str, int],
    ],
) -> None:
  """A list of the 6330256 combinations would take 193 MiB."""
  limit = 100 * 2**20
  *_, num_bytes = sixteen_modules
  for what, size in num_bytes.items():
    assert size < limit, what
