"""Generated tables are up to date, and pages say only what there is."""

import pathlib
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.cli import user_config
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures import claims
from modular_hyperteacher.figures import readme
from modular_hyperteacher.figures.extensions import variants
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import fig2c
from modular_hyperteacher.figures.paper import table_a1
from modular_hyperteacher.figures.paper import theory_cells
from modular_hyperteacher.figures.report import overview
from modular_hyperteacher.pretrained import student as students
from modular_hyperteacher.studies.meta_seq2seq import scan
from tests.helpers import results

_ROOT = readme.README.parent
_PATHS = (
    readme.README,
    *sorted((_ROOT / 'docs').glob('*.md')),
    *sorted((_ROOT / 'studies').glob('*/README.md')),
)
_PAGES = {str(path.relative_to(_ROOT)): path.read_text() for path in _PATHS}
_STUDIES = [path.parent for path in _PATHS if path.parents[1].name == 'studies']
_TEXT = '\n'.join(_PAGES.values())
_FOLDERS = (
    'configs|docs|examples|figures|launch|modular_hyperteacher|studies|tests'
)
_WRITTEN = 'figures/output'
# Flags of gcloud and SLURM.
_OTHERS_FLAGS = {'command', 'worker', 'gpus-per-node', 'ntasks-per-node'}
_CONFIGS = ('fig3b', 'fig3e', 'fig_a8', 'scan_me')
# Appendices are longer. The code of docs/extending.md counts, too.
_MAX_LINES = {
    'README.md': 130,
    'docs/trials.md': 250,
    'docs/performance_log.md': 250,
}
# How the artefacts of claims begin that are not the paper's.
_NOT_THE_PAPERS = 'beyond the paper', 'ours', 'Lake', 'Kobayashi', 'Schug'


@pytest.fixture(scope='module', name='library')
def fixture_library() -> data.Library:
  return data.Library(data.BUNDLED / 'nothing')


@pytest.fixture(scope='module', name='entries')
def fixture_entries(library: data.Library) -> list[verdicts.Entry]:
  return claims.evaluate(library)


@pytest.fixture(scope='module', name='judged')
def fixture_judged(entries: list[verdicts.Entry]) -> list[overview.Judged]:
  return list(zip(claims.known(), entries, strict=True))


def test_the_tables_are_those_that_are_written(
    library: data.Library, entries: list[verdicts.Entry]
) -> None:
  """If this fails: python figures/readme.py."""
  for path, text in readme.pages(library, entries).items():
    assert path.read_text() == text, path


def test_every_claim_has_a_row_on_the_page_of_its_paper(
    entries: list[verdicts.Entry],
) -> None:
  for claim, entry in zip(claims.known(), entries, strict=True):
    ((page, row),) = [
        (page, row)
        for page, text in _PAGES.items()
        for row in text.splitlines()
        if row.startswith(f'| {claim.id} ({claim.artefact})')
    ]
    assert f'| {claim.sentence} | {entry["verdict"]} |' in row
    assert row.count(' | ') == 9
    assert (page == 'docs/results.md') == _is_of_the_paper(claim)


def _is_of_the_paper(claim: verdicts.Claim) -> bool:
  return not claim.artefact.startswith(_NOT_THE_PAPERS)


def test_every_figure_has_a_row_with_all_its_verdicts(
    library: data.Library, judged: list[overview.Judged]
) -> None:
  table = readme.figure_table(library, judged)
  for claim, entry in judged:
    rows = [r for r in table.splitlines() if f'| {claim.artefact} |' in r]
    assert len(rows) == _is_of_the_paper(claim)
    assert all(entry['verdict'] in row for row in rows)
  assert '{' not in table


def test_findings_are_short(
    library: data.Library, judged: list[overview.Judged]
) -> None:
  rows = readme.figure_table(library, judged).splitlines()[2:]
  for row in rows:
    _, published, here, *_ = row.strip('| ').split(' | ')
    assert len(published.split()) <= 10, published
    assert len(here.split()) <= 12, here
    # One comparison of two numbers.
    assert len(re.findall(r'\d\.\d', here)) <= 2, here


def test_numbers_that_findings_state_are_measured(
    library: data.Library, judged: list[overview.Judged]
) -> None:
  _, table = fig2c.draw(library)
  converged = table[table['solver'] == 'levenberg_marquardt']
  alignment = converged.groupby(
      converged['task_support'].map(theory_cells.is_connected)
  )['alignment_mean']
  low, high = alignment.min()[True], alignment.max()[False]
  assert (
      f'alignment at least {low:.3f}, against {high:.3f} or less'
      in overview.FINDINGS['Figure 2C']['here']
  )
  (effect,) = [entry['effect'] for claim, entry in judged if claim.id == 'A1']
  assert effect is not None and abs(effect) < 0.01
  assert 'by less than 0.01' in overview.FINDINGS['Table A1']['here']


@pytest.mark.parametrize('figure', ['3B', '4E'])
def test_numbers_in_findings_are_means_over_seeds(
    library: data.Library, judged: list[overview.Judged], figure: str
) -> None:
  table = readme.figure_table(library, judged)
  (row,) = [row for row in table.splitlines() if f'| Figure {figure} |' in row]
  frame = library.values(f'fig{figure.lower()}')
  last = frame[
      (frame['kind'] == 'last')
      & (frame['metric'] == 'accuracy')
      & (frame['task.task_support'] == 'random')
  ]
  students = ['model.name', 'model.hidden_dim']
  seeds = last.pivot_table('value', 'seed', ['split', *students], observed=True)
  if figure == '4E':  # Here, models have different seeds.
    assert seeds['ood'].isna().to_numpy().any()
  better = pd.Series(seeds['ood'].mean()).groupby(level=0).idxmax()
  means = pd.Series(seeds['ood'][better].dropna().mean()).droplevel(1)
  modular = min(means['linear_hypernetwork'], means['nonlinear_hypernetwork'])
  others = max(means['anil'], means['maml'])
  assert f'{modular:.3f} against {others:.3f}' in row


def test_the_summary_counts_the_verdicts_of_the_rows(
    library: data.Library, entries: list[verdicts.Entry]
) -> None:
  kept = [
      entry['verdict']
      for claim, entry in zip(claims.known(), entries, strict=True)
      if not claim.artefact.startswith(_NOT_THE_PAPERS)
      and claim.id != 'TH-1-d'
      and '-adam' not in claim.id
  ]
  summary = overview.summarise(list(zip(claims.known(), entries)))
  assert f"Of the paper's {len(kept)} claims" in summary
  for verdict in verdicts.VERDICTS:
    assert f' {kept.count(verdict)} {verdict}' in summary


def test_the_summary_names_narrow_verdicts_of_the_paper(
    entries: list[verdicts.Entry],
) -> None:
  p = {'3B-1': 0.03, '3B-2': 0.01, '4C-1': 0.03, 'SG-7': 0.03}
  changed: Any = [
      dict(
          entry,
          p=p.get(entry['id'], 0.001),
          verdict='UNDECIDED' if entry['id'] == '4C-1' else 'SUPPORTED',
      )
      for entry in entries
  ]
  summary = overview.summarise(list(zip(claims.known(), changed)))
  assert summary.endswith('Supported with p above 0.02: 3B-1.')
  for entry in changed:
    entry['p'] = 0.001
  assert 'with p above' not in overview.summarise(
      list(zip(claims.known(), changed))
  )


def test_different_verdicts_are_shown_with_their_claims(
    library: data.Library, judged: list[overview.Judged]
) -> None:
  def table(changed: dict[str, str]) -> str:
    other: Any = [
        (claim, dict(entry, verdict=changed.get(claim.id, 'A')))
        for claim, entry in judged
    ]
    return readme.figure_table(library, other)

  assert '| [A](docs/' in table({})
  assert '[A (' not in table({})
  assert '| [A (3B-1), B (3B-2)](docs/' in table({'3B-2': 'B'})
  assert '| [A; Adam: B (2C-c), A (2C-d)](docs/' in table({'2C-c-adam': 'B'})


def test_every_verdict_rests_on_five_seeds(
    entries: list[verdicts.Entry],
) -> None:
  for entry in entries:
    assert all(c['num_seeds'] >= 5 for c in entry['comparisons']), entry['id']


def test_a_preset_decides_most_claims(
    library: data.Library, entries: list[verdicts.Entry]
) -> None:
  rows = readme.seeds_table(library, entries).splitlines()[2:]
  changed: dict[str, tuple[str, str]] = {}
  for row in rows:
    of_all, of_few, ids = row.strip('| ').split(' | ')
    changed |= dict.fromkeys(ids.split(', '), (of_all, of_few))
  verdict = {entry['id']: entry['verdict'] for entry in entries}
  assert len(changed) < len(verdict) / 4
  assert all(verdict[id_] == changed[id_][0] for id_ in changed)
  # Three seeds leave open whether hypernetworks are better on goals.
  claim = results.claim('4E')
  frame = library.values(claim.experiment)
  few, _ = pick.select_conditions(frame[frame['seed'] < 2023], claim.cell)
  judgement = verdicts.judge(claim.compare(few), claim.cell)
  assert changed['4E'] == ('SUPPORTED', judgement.verdict)


def test_the_page_says_how_ambiguous_table_a1_is(library: data.Library) -> None:
  _, table = table_a1.draw(library)
  columns = table.dropna(subset='closest')
  assert len(columns) == 4 and set(columns['num_sizes']) == {9}
  alike = columns['not_told_apart'].astype(int)
  assert (alike.min(), alike.max()) == (4, 7)
  text = 'four to seven of our nine sizes are within two standard errors'
  assert text in ' '.join(_PAGES['docs/theory.md'].split())


@pytest.mark.parametrize('size', [(4, 6, 256), (16, 32, 256), (16, 32, 32)])
def test_the_page_says_how_small_teachers_hide_modules(
    library: data.Library, size: tuple[int, int, int]
) -> None:
  _, table = variants.FIGURES['teacher_size'].make(library)
  columns = ['input dim', 'teacher hidden dim', 'shots']
  rows: Any = pick.rows(table, dict(zip(columns, size)))
  (row,) = rows.to_dict('records')
  assert row['num_seeds'] == 3
  text = f'{row["r2_mean"]:.2f} ± {row["r2_se"]:.2f}'
  assert text in ' '.join(_PAGES['docs/hyperteacher.md'].split())


def test_every_file_and_config_that_pages_name_exists() -> None:
  paths = set(re.findall(rf'\b(?:{_FOLDERS})/[\w/]+\.\w+(?::\w+)?', _TEXT))
  paths |= set(re.findall(r'`([\w/]+/\w+\.\w+)`', _TEXT))
  configs = {p for p in paths if re.match(r'configs/.*\.py', p)}
  made_up = {'configs/NAME.py'}
  # Files of the study that docs/extending.md walks through.
  made_up |= {'configs/sine_readouts.py'}
  configs -= made_up
  assert {'configs/fig3b.py', 'examples/pretrained.py'} < paths
  for path in paths - configs - made_up:
    folders = (_ROOT, _ROOT / 'modular_hyperteacher', *_STUDIES)
    exists = any((folder / path).exists() for folder in folders)
    assert path.startswith(_WRITTEN) or exists, path
  for path in configs:
    file, colon, choice = path.partition(':')
    (file,) = [f / file for f in (_ROOT, *_STUDIES) if (f / file).exists()]
    assert sweeps.expand(user_config.read(f'{file}{colon}{choice}')), path


def test_every_config_that_pages_name_without_its_folder_exists() -> None:
  known = '|'.join(plugins.config_modules())
  names = set(re.findall(rf'`((?:{known})(?::\w+)*)`', _TEXT))
  names |= set(re.findall(r'--config=(\w+(?::\w+)*)(?![\w/.])', _TEXT))
  # Files of the study that docs/extending.md walks through.
  names -= {'sine_readouts'}
  assert {'fig3b:paper', 'fig3b:smoke', 'fig3e:teacher_longer:smoke'} <= names
  for name in names:
    assert sweeps.expand(user_config.read(name)), name


def _defined_flags() -> set[str]:
  """Returns the names of all flags that the project's commands have."""
  names = set()
  for folder in _FOLDERS.split('|'):
    for path in (_ROOT / folder).rglob('*.py'):
      source = path.read_text()
      names |= set(re.findall(r"DEFINE_\w+\(\s*'(\w+)'", source))
      names |= set(re.findall(r"add_argument\(\s*'--(\w+)'", source))
      for constant in re.findall(r'DEFINE_\w+\(\s*(_[A-Z_]+),', source):
        names |= set(re.findall(rf"^{constant} = '(\w+)'", source, re.M))
  return names


def test_every_flag_that_pages_name_is_defined() -> None:
  mentioned = set(
      re.findall(r'(?<![\w-])--(?:no(?=wait))?([a-z][a-z_-]*)', _TEXT)
  )
  assert {'config', 'wandb', 'workers', 'parameters'} < mentioned
  assert not mentioned - _defined_flags() - _OTHERS_FLAGS - {'help', 'helpfull'}


def test_every_field_that_pages_set_or_select_by_is_there() -> None:
  configs = [user_config.read(name) for name in _CONFIGS]
  # Fields of docs/extending.md's own model, which tests/docs_test.py sets.
  overridden = set(re.findall(r'--config\.([\w.]+)=', _TEXT))
  overridden -= {'models.readout.nonlinearity', 'models.readout.name'}
  assert 'training.num_outer_steps' in overridden
  fields = {
      name for config in configs for name, _ in sweeps.flatten(config.to_dict())
  }
  assert overridden <= fields
  conditions = re.findall(r'--only=([a-z][\w.]*)=', _TEXT)
  assert {'model', 'task_support'} <= set(conditions)
  runs = [run for config in configs for run in sweeps.expand(config)]
  for field in conditions:
    with pytest.raises(errors.UserError, match=f"no run has {field} '-'"):
      sweeps.select(runs, [f'{field}=-'])


def test_every_module_that_pages_start_is_there() -> None:
  modules = set(re.findall(r'python3? -m\s+([\w.]+)', _TEXT))
  assert {'modular_hyperteacher.launch.local', 'launch.local'} < modules
  for module in modules - {'venv', 'pytest'}:
    path = _ROOT.joinpath(*module.split('.'))
    assert path.with_suffix('.py').exists() or (path / '__main__.py').exists()


def test_every_method_of_a_student_is_there() -> None:
  methods = set(re.findall(r'\bstudent\.(\w+)\(', _TEXT))
  assert {'adapt', 'predict', 'evaluate', 'fit_decoder'} <= methods
  assert all(hasattr(students.Student, method) for method in methods)


def test_scan_can_be_compared_with_a_published_file(
    tmp_path: pathlib.Path,
) -> None:
  (source,) = re.findall(
      '```python\n(.*?)```', _PAGES['studies/meta_seq2seq/README.md'], re.DOTALL
  )
  path = tmp_path / 'tasks_train_addprim_jump.txt'
  rows = scan.split('add_jump').train
  path.write_text(
      ''.join(f'IN: {" ".join(c)} OUT: {" ".join(a)}\n' for c, a in rows)
  )
  exec(source, {'path': path})  # pylint: disable=exec-used


# The form of the pages.


def _outside_code(text: str) -> str:
  return re.sub(r'^```.*?^```$', '', text, flags=re.DOTALL | re.MULTILINE)


def _count_words(text: str) -> int:
  return sum(bool(re.search('[A-Za-z0-9]', word)) for word in text.split())


def test_docs_are_few_pages_and_words() -> None:
  """Twelve pages, two appendices and an index; tables do not count."""
  pages = [text for name, text in _PAGES.items() if name.startswith('docs/')]
  assert len(pages) <= 12 + 2 + 1
  lines = [line for text in pages for line in text.splitlines()]
  without_tables = '\n'.join(line for line in lines if line[:1] != '|')
  assert _count_words(without_tables) <= 16_000


@pytest.mark.parametrize('name', _PAGES)
def test_pages_are_short(name: str) -> None:
  text = _PAGES[name]
  assert len(text.splitlines()) <= _MAX_LINES.get(name, 150)
  if name == 'README.md':
    assert _count_words(text) <= 1200
  lines = _outside_code(text).splitlines()
  long = [line for line in lines if len(line) > 120 and line[0] != '|']
  assert not long
  blocks = re.split(r'\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.) )', _outside_code(text))
  assert max(len(block.strip().splitlines()) for block in blocks) <= 8


def _anchor(heading: str) -> str:
  """Returns the name under which GitHub links to a heading."""
  kept = re.sub(r'[^\w\- ]', '', heading.lower())
  return kept.replace(' ', '-')


@pytest.mark.parametrize('name', _PAGES)
def test_links_of_a_page_resolve(name: str) -> None:
  folder = (_ROOT / name).parent
  links = re.findall(r'\]\(([^)\s]+)\)', _outside_code(_PAGES[name]))
  for link in links:
    if link.startswith('https://'):
      continue
    file, _, anchor = link.partition('#')
    path = folder / file if file else _ROOT / name
    assert path.exists(), link
    if anchor:
      headings = re.findall(r'^#+ (.*)$', path.read_text(), re.MULTILINE)
      assert anchor in map(_anchor, headings), link


def test_every_page_is_in_the_index_or_the_readme() -> None:
  index = 'docs/README.md'
  for name in set(_PAGES) - {'README.md', index}:
    folder, _, page = name.partition('/')
    lists = (index, page) if folder == 'docs' else ('README.md', name)
    assert f']({lists[1]})' in _PAGES[lists[0]], name
  assert f']({index})' in _PAGES['README.md']


@pytest.mark.slow
def test_the_python_in_the_readme_does_what_its_comments_say() -> None:
  (source,) = re.findall('```python\n(.*?)```', _PAGES['README.md'], re.DOTALL)
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
