"""Finished runs that nobody trained, with known results."""

import math
import pathlib
from typing import Any, Callable, Mapping

import plotly.graph_objects as go

from configs import fig3b as fig3b_config
from figures import style
from modular_hyperteacher import results
from modular_hyperteacher import sweeps

ROOT = pathlib.Path(__file__).parents[1]
SEEDS = (2020, 2021, 2022)
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


def write_runs(
    root,
    accuracies,
    preset='laptop',
    seeds=SEEDS,
    spread=SPREAD,
    drop=0.3,
    override=None,
):
  """Writes Figure 3B's runs; accuracy on ood_k8 is lower by `drop`."""
  config = fig3b_config.get_config(preset)
  config.training.seeds = seeds
  for path, value in (override or {}).items():
    config.update_from_flattened_dict({path: value})

  def measure(run):
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
) -> pathlib.Path:
  """Writes a finished run for all of a config for which there are results."""
  for run in sweeps.expand(config):
    summary = measure(run)
    if summary is not None:
      _write_run(root, run, summary)
  return root


def _write_run(root, run, summary):
  folder = results.RunFolder(root / run.experiment / run.preset / run.run_id)
  folder.open(run.config)
  folder.write_metrics(
      (step, seed, split, metric, step / 1000)
      for step in (0, 500)
      for seed in run.config['training']['seeds']
      for split in ('train', 'valid', 'test', 'ood')
      for metric in ('loss', 'accuracy', 'support_loss_after')
  )
  session = {'commit': 'abc', 'wall_s': 60.0, 'device_kind': 'abacus'}
  folder.write('provenance.json', {'sessions': [session]})
  folder.write('summary.json', {
      'run_id': run.run_id,
      'seeds': run.config['training']['seeds'],
      'last': summary,
      'best_validation': summary,
  })


def texts(figure: go.Figure) -> str:
  """Returns all that is written on a figure."""
  return ' '.join(a.text for a in figure.layout.annotations)
