"""Finished runs that nobody trained, with known results."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import math
import pathlib
from typing import Any, cast
from unittest import mock

import plotly.graph_objects as go

from modular_hyperteacher.configs import fig3b
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.runs import run_folder

ROOT = pathlib.Path(__file__).parents[2]
SEEDS = (2020, 2021, 2022)
SPLITS = ('train', 'valid', 'test', 'ood', 'ood_k1', 'ood_k4', 'ood_k8')
SPREAD = (-0.01, 0.0, 0.01)
# What the paper claims, with room to spare: (model, support) -> OOD accuracy.
AS_CLAIMED = {
    ('anil', 'random'): 0.60,
    ('maml', 'random'): 0.61,
    ('linear_hypernetwork', 'random'): 0.87,
    ('nonlinear_hypernetwork', 'random'): 0.96,
    ('anil', 'non_compositional'): 0.56,
    ('maml', 'non_compositional'): 0.58,
    ('linear_hypernetwork', 'non_compositional'): 0.40,
    ('nonlinear_hypernetwork', 'non_compositional'): 0.45,
}


# Split -> metric -> one value per seed.
Summary = Mapping[str, Mapping[str, list[float]]]
Row = tuple[int, int, str, str, float]  # Step, seed, split, metric, value.


def write_runs(
    root: pathlib.Path,
    accuracies: Mapping[tuple[str, str], float],
    preset: str = 'laptop',
    seeds: Sequence[int] = SEEDS,
    spread: Sequence[float] = SPREAD,
    drop: float = 0.3,
    override: Mapping[str, Any] | None = None,
) -> pathlib.Path:
  """Writes Figure 3B's runs; accuracy on ood_k8 is lower by `drop`."""
  config = fig3b.get_config(preset)
  config.training.seeds = seeds
  for path, value in (override or {}).items():
    config.update_from_flattened_dict({path: value})

  def measure(run: sweeps.Run) -> Summary | None:
    cell = run.config['model']['name'], run.config['task']['task_support']
    if cell not in accuracies:
      return None
    deviations = spread[: len(seeds)]
    if cell[0] in style.MONOLITHIC:  # So that differences vary over seeds.
      deviations = deviations[::-1]
    means = {split: accuracies[cell] for split in ('ood', 'ood_k1')}
    means['test'] = accuracies[cell] + 0.01
    means['ood_k8'] = accuracies[cell] - drop
    nothing = {'accuracy': [math.nan] * len(deviations)}  # An empty split.
    return {'ood_k2': nothing} | {
        split: {
            'accuracy': [mean + d for d in deviations],
            'loss': [1.0] * len(deviations),
        }
        for split, mean in means.items()
    }

  return write_experiment(root, config, measure)


def write_experiment(
    root: pathlib.Path,
    config: Any,
    measure: Callable[[sweeps.Run], Summary | None],
    curve: Callable[[sweeps.Run, int], float] = lambda run, step: step / 1000,
    rows: Callable[[sweeps.Run], Iterable[Row]] | None = None,
) -> pathlib.Path:
  """Writes a finished run for all of a config for which there are results.

  Args:
    root: the folder of results.
    config: as of `configs/`.
    measure: run -> its results, or None.
    curve: (run, step) -> every metric while training, at steps 0 and 500.
    rows: run -> what was measured while training, in place of `curve`.
  """
  with mock.patch('os.fsync'):  # These files need not outlive a power cut.
    for run in sweeps.expand(config):
      summary = measure(run)
      if summary is not None:
        found = rows(run) if rows else _make_rows(run, summary, curve)
        _write_run(root, run, summary, found)
  return root


def write_by_rule(
    root: pathlib.Path,
    experiment: str,
    rule: Callable[[dict[str, Any], str, str], float | None],
    preset: str = 'laptop',
    curve: Callable[[sweeps.Run, int], float] = lambda run, step: step / 1000,
    more_metrics: Sequence[str] = (),
    **only: Any,
) -> pathlib.Path:
  """Writes runs of an experiment, with results by a rule.

  Args:
    root: the folder of results.
    experiment: such as 'fig3e'.
    rule: (fields of the config by path, split, metric) -> mean over seeds;
      NaN for what is not defined, None for what is not measured.
    preset: the scale.
    curve: as of `write_experiment`.
    more_metrics: beside accuracy, loss and R2.
    **only: last part of a field's path = its value in the runs to write.
  """
  preset = sweeps.full_preset(experiment, preset)
  config = plugins.config_of(experiment).get_config(preset)

  def measure(run: sweeps.Run) -> Summary | None:
    fields = dict(sweeps.flatten(run.config))
    if any(
        not any(p.endswith(f'.{name}') and v == fields[p] for p in fields)
        for name, v in only.items()
    ):
      return None
    metrics = ['accuracy', 'loss', 'r2', 'r2_exact', *more_metrics]
    metrics += [f'r2_l{i}_m{j}' for i in range(2) for j in range(8)]
    found = {
        split: {metric: rule(fields, split, metric) for metric in metrics}
        for split in SPLITS
    }
    # Seeds differ, and not by the same in every run.
    tilt = int(sweeps.hash_of(run.run_id), 16) % 5 + 1
    num_seeds = len(run.config['training']['seeds'])
    middle = (num_seeds - 1) / 2
    deviations = [0.001 * tilt * (i - middle) for i in range(num_seeds)]
    return {
        split: {
            metric: [mean + d for d in deviations]
            for metric, mean in values.items()
            if mean is not None
        }
        for split, values in found.items()
    }

  return write_experiment(root, config, measure, curve)


def _make_rows(
    run: sweeps.Run,
    summary: Summary,
    curve: Callable[[sweeps.Run, int], float],
) -> Iterator[Row]:
  closed = [m for m in summary.get('test', ()) if m.startswith('closed')]
  for step in (0, 500):
    for seed in run.config['training']['seeds']:
      for split in ('train', 'valid', 'test', 'ood'):
        for metric in ('loss', 'accuracy', 'support_loss_after', *closed):
          yield step, seed, split, metric, curve(run, step)


def write_changed(
    root: pathlib.Path, change: Callable[[dict[str, Any]], None]
) -> None:
  """Writes Figure 3B's runs with changed configs, under their new hashes."""

  def curve(_: sweeps.Run, step: int) -> float:
    return step / 1000

  for run in sweeps.expand(fig3b.get_config()):
    change(run.config)
    run_id = f'changed-{sweeps.hash_config(run.config)}'
    changed = dataclasses.replace(run, run_id=run_id)
    summary = {'ood': {'accuracy': [0.5] * len(SEEDS)}}
    _write_run(root, changed, summary, _make_rows(changed, summary, curve))


def _write_run(
    root: pathlib.Path,
    run: sweeps.Run,
    summary: Summary,
    rows: Iterable[Row],
) -> None:
  folder = run_folder.RunFolder(root / run.experiment / run.preset / run.run_id)
  folder.open(run.config)
  folder.write_metrics(rows)
  session = {
      'commit': 'abc',
      'wall_s': 60.0,
      'cpu_s': 90.0,
      'device_kind': 'abacus',
  }
  folder.write('provenance.json', {'sessions': [session]})
  folder.write(
      'summary.json',
      {
          'run_id': run.run_id,
          'seeds': run.config['training']['seeds'],
          'last': summary,
          'best_validation': summary,
      },
  )


def traces(figure: go.Figure | None) -> list[Any]:
  """Returns what is drawn on a figure, trace by trace."""
  assert figure is not None
  return list(figure.data)


def layout(figure: go.Figure | None) -> Any:
  """Returns the layout of a figure."""
  assert figure is not None
  return cast(Any, figure.layout)


def texts(figure: go.Figure | None) -> str:
  """Returns all that is written on a figure."""
  return ' '.join(a.text for a in layout(figure).annotations)
