"""The README's table says what is bundled, its code does what it says."""

import re

import numpy as np
import pytest

from figures import claims
from figures import readme
from modular_hyperteacher import errors
from modular_hyperteacher.cli import command_line
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.profiling import flops

_ROOT = readme.PATH.parent
_FOLDERS = 'configs|docs|examples|figures|launch|modular_hyperteacher|tests'
_WRITTEN = 'figures/output'
# Of gcloud and SLURM.
_OTHERS_FLAGS = {'command', 'worker', 'gpus-per-node', 'ntasks-per-node'}


def test_the_table_is_the_one_that_is_written() -> None:
  """If this fails: python figures/readme.py."""
  text = readme.PATH.read_text()
  assert readme.replace_table(text) == text


def test_every_claim_has_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(flops, 'outer_step', lambda config: 1e12)
  rows = readme.make_table().splitlines()
  for claim in claims.CLAIMS:
    (row,) = [r for r in rows if r.startswith(f'| {claim.id} (')]
    assert claim.sentence in row
  assert len({row.count(' | ') for row in rows}) == 1
  # 8 runs of 3 seeds and 200,000 steps of a second each.
  row = next(row for row in rows if '3B-1' in row)
  seeds = 3
  assert f'{8 * seeds * 200_000 * 1e12:.1e} FLOP' in row


def test_a_text_without_a_place_for_it_is_refused() -> None:
  with pytest.raises(errors.UserError, match='lacks the lines'):
    readme.replace_table('# A title')


def test_every_file_and_config_in_it_exists() -> None:
  text = readme.PATH.read_text()
  paths = set(re.findall(rf'\b(?:{_FOLDERS})/[\w/]+\.\w+(?::\w+)?', text))
  configs = {path for path in paths if path.startswith('configs/')}
  assert {'configs/fig3b.py:paper', 'examples/pretrained.py'} < paths
  for path in paths - configs:
    assert path.startswith(_WRITTEN) or (_ROOT / path).exists(), path
  for path in configs:
    file, _, preset = path.partition(':')
    get_config = command_line.load_config(str(_ROOT / file))
    assert sweeps.expand(get_config(preset or 'laptop')), path


def _defined_flags() -> set[str]:
  """Returns the names of all flags that the project's commands have."""
  names = set()
  for folder in _FOLDERS.split('|'):
    for path in (_ROOT / folder).rglob('*.py'):
      source = path.read_text()
      names |= set(re.findall(r"DEFINE_\w+\(\s*'(\w+)'", source))
      names |= set(re.findall(r"add_argument\(\s*'--(\w+)'", source))
      for constant in re.findall(r'DEFINE_\w+\(\s*(_[A-Z]+),', source):
        names |= set(re.findall(rf"^{constant} = '(\w+)'", source, re.M))
  return names


def test_every_flag_in_it_is_defined() -> None:
  text = readme.PATH.read_text()
  mentioned = set(
      re.findall(r'(?<![\w-])--(?:no(?=wait))?([a-z][a-z_-]*)', text)
  )
  assert {'config', 'wandb', 'workers', 'parameters'} < mentioned
  assert not mentioned - _defined_flags() - _OTHERS_FLAGS


def test_every_field_that_it_sets_or_selects_by_is_there() -> None:
  text = readme.PATH.read_text()
  configs = [
      command_line.load_config(str(_ROOT / 'configs' / name))()
      for name in ('fig3b.py', 'scan_me.py')
  ]
  overridden = re.findall(r'--config\.([\w.]+)=', text)
  assert 'training.num_outer_steps' in overridden
  fields = {
      name for config in configs for name, _ in sweeps.flatten(config.to_dict())
  }
  assert set(overridden) <= fields
  conditions = re.findall(r'--only=([\w.]+)=', text)
  assert {'model', 'task_support'} <= set(conditions)
  runs = sweeps.expand(configs[0])
  for field in conditions:
    with pytest.raises(errors.UserError, match=f"no run has {field} '-'"):
      sweeps.select(runs, [f'{field}=-'])


def test_every_module_that_it_starts_is_there() -> None:
  text = readme.PATH.read_text()
  modules = set(re.findall(r'python3? -m ([\w.]+)', text)) - {'venv', 'pytest'}
  assert {'modular_hyperteacher.main', 'launch.local'} < modules
  for module in modules:
    assert _ROOT.joinpath(*module.split('.')).with_suffix('.py').exists()


@pytest.mark.slow
def test_the_python_in_it_does_what_its_comments_say() -> None:
  text = readme.PATH.read_text()
  (source,) = re.findall('```python\n(.*?)```', text, re.DOTALL)
  names = {}
  exec(source, names)  # pylint: disable=exec-used
  student, fast_params = names['student'], names['fast_params']
  score = student.score(fast_params, names['task'].query)
  (accuracy,) = re.findall(r'# accuracy (\S+)', source)
  assert float(score['accuracy']) == pytest.approx(float(accuracy), abs=0.05)
  (line,) = re.findall('# modules (.*)', source)[:1]
  modules = re.findall(r'\d+', line)
  active = np.flatnonzero(names['task'].latent)
  assert active.tolist() == list(map(int, modules))
  decoded = student.fit_decoder()(fast_params)[0]
  told = [float(x) for x in re.findall(r'0\.\d\d(?=,|;)', source)]
  np.testing.assert_allclose(decoded[active], told, atol=0.05)
  assert (np.delete(decoded, active) < 0.3).all()
