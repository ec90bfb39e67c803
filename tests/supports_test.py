"""Task supports: published sizes, held-out sets that stay held out, errors.

Numbers cite the paper's appendix or the section of the specification that
they were recomputed in. Sets are read off by drawing until all members have
been seen, so nothing here depends on how a set is stored.
"""

import functools
import itertools
import logging
import math
import tracemalloc

import jax
import numpy as np
import pytest

from modular_hyperteacher.tasks import combinations
from modular_hyperteacher.tasks import supports

_NUM_DRAWS = 2048
_RANDOM = set()  # Made by `_make`.
# Circular distances between the modules of a mask of connected support.
_STEPS = ((0,), (0, 1), (0, 2))
_PAIRS = ['04', '05', '14', '15', '16', '25', '26', '27', '36', '37']


@functools.lru_cache
def _make(
    task_support='random',
    num_modules=4,
    max_active=2,
    num_layers=2,
    fraction_ood=0.25,
    ood_ks=None,
):
  if ood_ks is None:  # They cost time to count if the support is random.
    fixed = task_support != 'random'
    ood_ks = tuple(k for k in (1, 2, 4, 8) if fixed and k <= num_modules)
  made = supports.make(
      task_support,
      num_modules=num_modules,
      max_active=max_active,
      num_layers=num_layers,
      fraction_ood=fraction_ood,
      ood_ks=ood_ks,
  )
  if task_support == 'random':
    _RANDOM.add(made)
  return made


@functools.lru_cache
def _sampler(task_support, split):
  """Returns a function of the parameters and many keys.

  Compiled for random support only: compiling is most of the time here, and
  the operations of the other supports are compiled once for all of them.
  """
  sample = jax.vmap(
      lambda params, key: task_support.sample(params, key, split), (None, 0)
  )
  is_random = task_support in _RANDOM
  return jax.jit(sample) if is_random else sample


def _draw(task_support, params, split, seed=0):
  """Returns 2048 draws, [2048, L, M] bool."""
  keys = jax.random.split(jax.random.key(seed), _NUM_DRAWS)
  drawn = np.asarray(_sampler(task_support, split)(params, keys))
  assert drawn.dtype == bool
  return drawn


def _codes(masks):
  """Returns one integer per combination, [C, L, M] -> [C]."""
  bits = masks.reshape(len(masks), -1).astype(np.int64)
  return bits @ (1 << np.arange(bits.shape[1], dtype=np.int64))


def _set(task_support, params, split):
  """Returns the combinations of a split, [C, L, M], and their codes.

  Draws on after the last one is found, to notice more than there should be;
  one of n is missed by n (log n + 20) draws with probability below e^-20.
  """
  size = task_support.count(params, split)
  num_draws = math.ceil(size * (math.log(size) + 20))
  found, codes = None, None
  for seed in range(math.ceil(num_draws / _NUM_DRAWS)):
    drawn = _draw(task_support, params, split, seed)
    drawn = drawn if found is None else np.concatenate([found, drawn])
    codes, first = np.unique(_codes(drawn), return_index=True)
    found = drawn[first]
  assert len(codes) == size
  return found, set(codes.tolist())


def _every(num_modules, max_active, num_layers):
  """Returns all combinations by brute force, [C, L, M]."""
  masks = [
      mask
      for mask in itertools.product([False, True], repeat=num_modules)
      if 1 <= sum(mask) <= max_active
  ]
  return np.array(list(itertools.product(masks, repeat=num_layers)))


def _active(mask):
  """Returns the numbers of the active modules of a mask [M]."""
  return np.flatnonzero(mask).tolist()


def _init(task_support, seed=0):
  return task_support.init(jax.random.key(seed))


def _sizes(task_support, *splits):
  """Returns how many combinations splits hold; the same for all seeds."""
  params = supports.SplitParams(np.zeros(8, np.uint32), np.zeros(4, np.int32))
  return tuple(task_support.count(params, split) for split in splits)


def _num_components(masks):
  """How many components the graph of combinations has.

  Nodes are combinations; an edge joins two that share an active module of the
  same layer.
  """
  active = masks.reshape(len(masks), -1).astype(int)
  adjacent = active @ active.T > 0
  unseen, components = set(range(len(masks))), 0
  while unseen:
    components += 1
    frontier = {unseen.pop()}
    while frontier:
      reached = set(np.flatnonzero(adjacent[list(frontier)].any(0)).tolist())
      frontier = reached & unseen
      unseen -= frontier
  return components


@pytest.fixture(scope='module')
def sixteen_modules():
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
  params = _init(made)
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


# Sizes.

# Spec 2.5, G = 2, a quarter held out: (M, K, |T|, OOD).
_TWO_LAYERS = [
    (4, 1, 16, 4),
    (4, 2, 100, 25),
    (4, 3, 196, 49),
    (4, 4, 225, 56),
    (6, 1, 36, 9),
    (6, 2, 441, 110),
    (6, 3, 1681, 420),
    (6, 4, 3136, 784),
    (6, 6, 3969, 992),
    (8, 1, 64, 16),
    (8, 2, 1296, 324),
    (8, 3, 8464, 2116),
    (8, 4, 26244, 6561),
    (8, 6, 60516, 15129),
    (8, 8, 65025, 16256),
    (10, 2, 3025, 756),
    (10, 3, 30625, 7656),
    (10, 4, 148225, 37056),
    (12, 2, 6084, 1521),
    (12, 3, 88804, 22201),
    (12, 4, 628849, 157212),
    (14, 2, 11025, 2756),
    (14, 3, 219961, 54990),
    (14, 4, 2160900, 540225),
    (16, 1, 256, 64),
    (16, 2, 18496, 4624),
    (16, 3, 484416, 121104),
    (16, 4, 6330256, 1582564),
]


@pytest.mark.parametrize('num_modules, max_active, total, num_ood', _TWO_LAYERS)
def test_sizes_of_random_support_with_two_layers(
    num_modules, max_active, total, num_ood
):
  task_support = _make(num_modules=num_modules, max_active=max_active)
  sizes = _sizes(task_support, 'train', 'valid', 'test', 'ood')
  num_train = total - num_ood
  assert sizes == (num_train, num_train, num_train, num_ood)


@pytest.mark.parametrize(
    'task_support, max_active, num_layers, num_train, num_ood',
    [
        # Spec 2.4: one mask (preferences), M = 8.
        ('random', 3, 1, 69, 23),
        ('non_compositional', 3, 1, 63, 29),
        ('connected', 2, 1, 24, 10),
        ('disconnected', 2, 1, 20, 10),
        # Spec 2.5: two generated layers (hyperteacher), M = 8.
        ('non_compositional', 2, 2, 1008, 288),
        ('connected', 2, 2, 576, 698),
        ('disconnected', 2, 2, 104, 698),
    ],
)
def test_sizes_with_eight_modules(
    task_support, max_active, num_layers, num_train, num_ood
):
  made = _make(task_support, 8, max_active, num_layers)
  assert _sizes(made, 'train', 'ood') == (num_train, num_ood)
  # The same numbers of different combinations are drawn; none is in both.
  params = _init(made)
  train, train_codes = _set(made, params, 'train')
  ood, ood_codes = _set(made, params, 'ood')
  assert not train_codes & ood_codes
  every = set(_codes(_every(8, max_active, num_layers)).tolist())
  assert train_codes | ood_codes <= every
  if task_support in ('random', 'non_compositional'):
    assert train_codes | ood_codes == every
  # Only non-compositional support never sees a module of a layer.
  num_unseen = 1 if task_support == 'non_compositional' else 0
  assert train.any(0).sum() == num_layers * 8 - num_unseen
  assert len(ood) == num_ood


@pytest.mark.parametrize(
    'fraction_ood, num_ood',
    [(0.1, 129), (0.3, 388), (0.5, 648), (0.7, 907), (0.9, 1166)],
)
def test_sizes_of_figure_a5(fraction_ood, num_ood):
  """M = 8, K = 2: the floor of the fraction of 1296."""
  made = _make(num_modules=8, fraction_ood=fraction_ood)
  assert _sizes(made, 'train', 'ood') == (1296 - num_ood, num_ood)


# The random split.


@pytest.mark.parametrize('seed', range(4))
def test_random_split_is_a_partition(seed):
  made = _make(ood_ks=(1, 2, 3, 4))
  params = _init(made, seed)
  _, train = _set(made, params, 'train')
  _, ood = _set(made, params, 'ood')
  assert not train & ood
  assert train | ood == set(_codes(_every(4, 2, 2)).tolist())


def test_large_random_split_is_a_partition():
  """M = 8, K = 3: all 8464 combinations, from some 240,000 draws."""
  made = _make(num_modules=8, max_active=3)
  params = _init(made)
  _, train = _set(made, params, 'train')
  _, ood = _set(made, params, 'ood')
  assert not train & ood
  assert train | ood == set(_codes(_every(8, 3, 2)).tolist())


def test_members_of_the_random_split_are_the_draws():
  """M = 16, K = 3: the sets as numbered, without drawing."""
  tables = (combinations.masks_up_to(16, 3),) * 2
  made = _make(num_modules=16, max_active=3)
  params = _init(made)
  total, num_ood = 484416, 121104
  members = {
      'train': combinations.permuted_set(tables, 0, total - num_ood),
      'ood': combinations.permuted_set(tables, total - num_ood, total),
  }
  codes = {}
  for split, numbered in members.items():
    ranks = np.arange(numbered.count(params.round_keys))
    codes[split] = _codes(
        np.asarray(numbered.members(params.round_keys, ranks))
    )
    assert len(np.unique(codes[split])) == len(ranks)
    drawn = _codes(_draw(made, params, split))
    assert np.isin(drawn, codes[split]).all()
  assert not np.isin(codes['train'], codes['ood']).any()
  assert len(codes['train']) + len(codes['ood']) == total


@pytest.mark.parametrize('task_support', ['random', 'connected'])
def test_validation_and_test_draw_training_combinations(task_support):
  made = _make(task_support, 8)
  params, key = _init(made), jax.random.key(0)
  expected = made.sample(params, key, 'train')
  for split in ('valid', 'test'):
    drawn = made.sample(params, key, split)
    np.testing.assert_array_equal(drawn, expected)
    assert made.count(params, split) == made.count(params, 'train')


def test_different_seeds_hold_out_different_combinations():
  made = _make(ood_ks=(1, 2, 3, 4))
  held_out = [
      frozenset(_set(made, _init(made, seed), 'ood')[1]) for seed in range(8)
  ]
  assert len(set(held_out)) == 8
  again = frozenset(_set(made, _init(made, 0), 'ood')[1])
  assert again == held_out[0]


def test_random_split_is_not_stratified_and_treats_combinations_alike():
  """Two of six are held out: each in a third of 300 seeds."""
  made = _make(num_modules=3, max_active=2, num_layers=1, fraction_ood=0.34)
  num_seeds = 300
  held_out = np.zeros((num_seeds, 6))
  order = {int(c): i for i, c in enumerate(_codes(_every(3, 2, 1)))}
  for seed in range(num_seeds):
    params = _init(made, seed)
    for code in np.unique(_codes(_draw(made, params, 'ood'))):
      held_out[seed, order[int(code)]] = 1
  assert (held_out.sum(1) == 2).all()
  frequency = held_out.mean(0)
  sigma = math.sqrt(1 / 3 * 2 / 3 / num_seeds)
  assert np.abs(frequency - 1 / 3).max() < 5 * sigma


def test_random_split_is_redrawn_until_it_covers_all_modules(caplog):
  """Ten training combinations of four modules; many draws miss one."""
  made = _make(fraction_ood=0.9)
  redrawn = 0
  for seed in range(30):
    caplog.clear()
    with caplog.at_level(logging.INFO):
      params = _init(made, seed)
    redrawn += 'to cover all modules' in caplog.text
    train, train_codes = _set(made, params, 'train')
    assert train.any(0).all(), 'a module of some layer is never trained on'
    if seed < 5:
      _, ood_codes = _set(made, params, 'ood')
      assert not train_codes & ood_codes
      assert len(train_codes) == 10 and len(ood_codes) == 90
  assert redrawn > 0, 'nothing was redrawn: this test has lost its teeth'


def test_random_split_refuses_what_cannot_be_covered():
  """K = 1, M = 4: two training combinations cannot cover four modules."""
  made = _make(max_active=1, fraction_ood=0.9)
  with pytest.raises(ValueError) as error:
    _init(made)
  assert 'task.fraction_ood is 0.9' in str(error.value)
  assert '2 training combinations' in str(error.value)
  assert 'must be smaller' in str(error.value)


def test_init_is_the_same_for_the_same_key():
  made = _make(ood_ks=(1, 2, 3, 4))
  jax.tree.map(np.testing.assert_array_equal, _init(made, 5), _init(made, 5))
  shapes = [jax.tree.map(np.shape, _init(made, seed)) for seed in range(3)]
  assert shapes[0] == shapes[1] == shapes[2]


# The other supports.


@pytest.mark.parametrize(
    'num_modules, max_active, num_layers', [(8, 3, 1), (4, 2, 2), (3, 2, 3)]
)
def test_non_compositional_holds_out_the_last_module_of_the_last_layer(
    num_modules, max_active, num_layers
):
  made = _make('non_compositional', num_modules, max_active, num_layers)
  params = _init(made)
  train, train_codes = _set(made, params, 'train')
  ood, ood_codes = _set(made, params, 'ood')
  assert not train[:, -1, -1].any()
  assert ood[:, -1, -1].all()
  every = _every(num_modules, max_active, num_layers)
  held_out = every[:, -1, -1]
  assert train_codes == set(_codes(every[~held_out]).tolist())
  assert ood_codes == set(_codes(every[held_out]).tolist())
  # Everything else is seen: all but one module of one layer.
  assert train.any(0).sum() == num_layers * num_modules - 1


def test_connected_masks_by_hand():
  """Spec 2.4, M = 8: all singles, {i, i+1} and {i, i+2} around the circle."""
  expected = {frozenset([i]) for i in range(8)}
  expected |= {frozenset([i, (i + 1) % 8]) for i in range(8)}
  expected |= {frozenset([i, (i + 2) % 8]) for i in range(8)}
  masks = supports.connected_masks(8)
  assert masks.shape == (24, 8)
  assert set(map(frozenset, map(_active, masks))) == expected


def test_disconnected_masks_by_hand():
  """Spec 2.4, M = 8: all singles and the pairs inside of a half."""
  expected = {frozenset([i]) for i in range(8)}
  expected |= set(map(frozenset, itertools.combinations(range(4), 2)))
  expected |= set(map(frozenset, itertools.combinations(range(4, 8), 2)))
  masks = supports.disconnected_masks(8)
  assert masks.shape == (20, 8)
  assert set(map(frozenset, map(_active, masks))) == expected


@pytest.mark.parametrize('num_modules', [6, 8, 10, 12])
def test_connected_is_connected_and_disconnected_is_not(num_modules):
  """One layer: the masks; more of them: what is trained on."""
  connected = supports.connected_masks(num_modules)
  assert _num_components(connected) == 1
  assert _num_components(supports.disconnected_masks(num_modules)) == 2


@pytest.mark.parametrize('num_layers', [1, 2])
@pytest.mark.parametrize(
    'task_support, num_components', [('connected', 1), ('disconnected', 2)]
)
def test_training_combinations_are_connected_or_not(
    task_support, num_components, num_layers
):
  made = _make(task_support, 8, 2, num_layers)
  train, _ = _set(made, _init(made), 'train')
  assert _num_components(train) == num_components


def test_connected_and_disconnected_by_brute_force():
  """Two layers, M = 8: every one of 1296 combinations by its definition."""
  circle = [{(i + j) % 8 for j in step} for i in range(8) for step in _STEPS]
  expected = {'connected': [], 'disconnected': [], 'ood': []}
  for masks in _every(8, 2, 2):
    active = [set(_active(mask)) for mask in masks]
    connected = all(layer in circle for layer in active)
    same_number = len({len(layer) for layer in active}) == 1
    all_active = set.union(*active)
    disconnected = same_number and (max(all_active) < 4 or min(all_active) > 3)
    if connected:
      expected['connected'].append(masks)
    if disconnected:
      expected['disconnected'].append(masks)
    if not connected and not disconnected:
      expected['ood'].append(masks)
  expected = {
      name: set(_codes(np.array(masks)).tolist())
      for name, masks in expected.items()
  }
  for name in ('connected', 'disconnected'):
    made = _make(name, 8, 2, 2)
    params = _init(made)
    assert _set(made, params, 'train')[1] == expected[name]
    assert _set(made, params, 'ood')[1] == expected['ood']


@pytest.mark.parametrize('task_support', ['connected', 'disconnected'])
def test_ood_pairs_with_one_layer(task_support):
  """Spec 2.4 lists them."""
  made = _make(task_support, 8, 2, 1)
  ood, _ = _set(made, _init(made), 'ood')
  active = sorted(''.join(map(str, _active(m[0]))) for m in ood)
  assert active == _PAIRS


@pytest.mark.parametrize('task_support', ['connected', 'disconnected'])
def test_hotness_of_ood_combinations_with_two_layers(task_support):
  """Spec 2.5: of 698, none is one-hot in both layers, 506 two-hot in both."""
  made = _make(task_support, 8, 2, 2)
  ood, _ = _set(made, _init(made), 'ood')
  num_active = ood.sum(-1)
  assert len(ood) == 698
  assert not (num_active == 1).all(-1).any()
  assert (num_active == 2).all(-1).sum() == 506


# OOD(K=k).


@pytest.mark.parametrize('seed', range(6))
def test_ood_k_of_random_support_against_brute_force(seed):
  made = _make(ood_ks=(1, 2, 3, 4))
  params = _init(made, seed)
  _, train = _set(made, params, 'train')
  ood, _ = _set(made, params, 'ood')
  for k in (1, 2):
    expected = set(_codes(ood[(ood.sum(-1) == k).all(-1)]).tolist())
    assert made.count(params, f'ood_k{k}') == len(expected)
    if expected:
      masks, codes = _set(made, params, f'ood_k{k}')
      assert (masks.sum(-1) == k).all()
      assert codes == expected
      assert not codes & train
  for k in (3, 4):
    assert made.count(params, f'ood_k{k}') == math.comb(4, k) ** 2
    masks, codes = _set(made, params, f'ood_k{k}')
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
    task_support, num_modules, max_active, num_layers, expected
):
  made = _make(task_support, num_modules, max_active, num_layers)
  params = _init(made)
  _, train = _set(made, params, 'train')
  _, ood = _set(made, params, 'ood')
  for k, size in expected.items():
    assert made.count(params, f'ood_k{k}') == size
    if size <= 1:
      continue
    masks, codes = _set(made, params, f'ood_k{k}')
    assert masks.shape[1:] == (num_layers, num_modules)
    assert (masks.sum(-1) == k).all()
    assert not codes & train
    assert k > max_active or codes <= ood


def test_ood_k_of_a_random_support_too_large_to_list(sixteen_modules):
  """A quarter of the pairs of one-hots, of two-hots, ..."""
  made, params, drawn, _ = sixteen_modules
  for k in (1, 2, 4):
    num_exact = math.comb(16, k) ** 2
    sigma = math.sqrt(num_exact * 0.25 * 0.75)
    size = made.count(params, f'ood_k{k}')
    assert abs(size - num_exact / 4) < 5 * sigma
  masks = drawn['ood_k4']
  assert (masks.sum(-1) == 4).all()
  assert not np.isin(_codes(masks), _codes(drawn['train'])).any()
  # Above K: any combination; 8 * 8 / 16 modules are shared on average.
  assert made.count(params, 'ood_k8') == math.comb(16, 8) ** 2
  masks = drawn['ood_k8']
  assert (masks.sum(-1) == 8).all()
  shared = (masks[:, 0] & masks[:, 1]).sum(-1).mean()
  assert abs(shared - 4) < 5 * math.sqrt(2 / len(masks))


@pytest.mark.parametrize('task_support', ['connected', 'disconnected'])
def test_a_draw_from_an_empty_set_returns(task_support):
  made = _make(task_support, 8, 2, 2)
  params = _init(made)
  assert made.count(params, 'ood_k1') == 0
  assert _draw(made, params, 'ood_k1').shape == (_NUM_DRAWS, 2, 8)


def test_the_only_combination_of_all_modules_is_held_out_or_not():
  """D14: M = K = 4, k = 4 is one combination; mostly it is trained on."""
  made = _make(max_active=4, ood_ks=(4,))
  sizes = []
  for seed in range(20):
    params = _init(made, seed)
    sizes.append(made.count(params, 'ood_k4'))
    drawn = _draw(made, params, 'ood_k4')
    assert drawn.shape == (_NUM_DRAWS, 2, 4)
    # One of 169 training combinations is missed with probability e^-12.
    assert _draw(made, params, 'train').all((-1, -2)).any() != sizes[-1]
    assert drawn.all() or not sizes[-1]
  assert set(sizes) == {0, 1}


# Errors.


@pytest.mark.parametrize(
    'fields, expected',
    [
        (
            {'task_support': 'conected'},
            [
                "task.task_support is 'conected'",
                "'random', 'non_compositional', 'connected', 'disconnected'",
            ],
        ),
        ({'num_modules': 0}, ['task.num_modules is 0', 'positive']),
        ({'num_modules': -3}, ['task.num_modules is -3', 'positive']),
        (
            {'max_active': 5},
            ['task.max_active is 5', 'between 1 and task.num_modules', '4'],
        ),
        ({'max_active': 0}, ['task.max_active is 0', 'between 1 and']),
        (
            {'fraction_ood': 0.0099},
            ['task.fraction_ood is 0.0099', 'at least 1/100', 'below 1'],
        ),
        ({'fraction_ood': 1.0}, ['task.fraction_ood is 1.0', 'below 1']),
        ({'fraction_ood': 0.0}, ['task.fraction_ood is 0.0', 'at least 1/100']),
        ({'fraction_ood': -0.5}, ['task.fraction_ood is -0.5', 'at least']),
        ({'fraction_ood': 1.5}, ['task.fraction_ood is 1.5', 'below 1']),
        (
            {'num_modules': 16, 'max_active': 16},
            ['task.max_active is 16', '16 modules', '4294836225', '2147483647'],
        ),
        (
            {'num_modules': 32, 'max_active': 16},
            ['task.num_modules is 32', '10518300', '8 active', '4194304'],
        ),
        (
            {
                'task_support': 'non_compositional',
                'num_modules': 1,
                'max_active': 1,
            },
            ['task.num_modules is 1', 'non_compositional', 'at least 2'],
        ),
        (
            {'task_support': 'connected', 'num_modules': 8, 'max_active': 3},
            ['task.max_active is 3', 'connected support', '2 only'],
        ),
        (
            {
                'task_support': 'disconnected',
                'num_modules': 8,
                'max_active': 1,
            },
            ['task.max_active is 1', 'disconnected support', '2 only'],
        ),
        (
            {'task_support': 'connected', 'num_modules': 7},
            ['task.num_modules is 7', 'connected support', 'even', 'above 4'],
        ),
        (
            {'task_support': 'disconnected', 'num_modules': 4},
            ['task.num_modules is 4', 'disconnected support', 'above 4'],
        ),
    ],
    ids=lambda value: None,
)
def test_errors_name_the_field_and_the_value(fields, expected):
  with pytest.raises(ValueError) as error:
    _make(**fields)
  for part in expected:
    assert part in str(error.value)


def test_the_smallest_fraction_holds_out_one_combination():
  """The limit that the message names."""
  assert _sizes(_make(fraction_ood=0.01), 'train', 'ood') == (99, 1)


# Memory.


def test_sixteen_modules_fit_into_little_memory(sixteen_modules):
  """A list of the 6330256 combinations would take 193 MiB."""
  limit = 100 * 2**20
  *_, num_bytes = sixteen_modules
  for what, size in num_bytes.items():
    assert size < limit, what
