"""Draws a task, or what a trained model does in one.

  python -m figures.render --world=goals --seed=3
  python -m figures.render --world=preferences --seed=3 --format=html,png
  python -m figures.render --world=hyperteacher --preset=paper

A grid world is drawn with walls, objects, the agent and its optimal path; a
hyperteacher with its modules, their sum and the soft labels. With --run, a
trained model adapts to a task, and the picture shows what it then does. In a
grid world it acts, beside the optimal agent. On the hyperteacher, the task's
latent is compared with the one decoded from the adapted parameters:

  python -m figures.render --run=fig4e/laptop --model=anil --seed=3
  python -m figures.render --run=results/fig3b/laptop/RUN_ID --split=test

Trains nothing; the same arguments always give the same picture.
"""

from absl import flags
import jax
import plotly.graph_objects as go

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher import pretrained
from modular_hyperteacher import randomness
from modular_hyperteacher.cli import command_line
from modular_hyperteacher.cli import script
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.figures.paper import fig3a
from modular_hyperteacher.figures.paper import fig4a
from modular_hyperteacher.figures.plotting import images
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.figures.report import page as report
from modular_hyperteacher.figures.worlds import rollouts

_FORMATS = ('html', *images.FORMATS)
_PICTURES: dict[str, str] = {
    world: draw
    for study in plugins.studies()
    for world, draw in study.pictures.items()
}
_WORLDS = (*fig4a.WORLDS, *_PICTURES, 'hyperteacher')


def define_flags() -> None:
  """Defines the flags of the command line."""
  flags.DEFINE_string('world', None, f'What to draw: {", ".join(_WORLDS)}.')
  flags.DEFINE_string(
      'preset',
      'laptop',
      "With --world=hyperteacher: the preset of Figure 3B's teacher.",
  )
  flags.DEFINE_integer(
      'seed', fig4a.SEED, 'Seed of world and task; with --run, of the task.'
  )
  flags.DEFINE_string('run', None, 'Trained run, by its name or its folder.')
  flags.DEFINE_string('model', None, 'With --run: the model to load.')
  flags.DEFINE_string(
      'task_support',
      'random',
      'With --run and --model: the task support that it was trained on.',
  )
  flags.DEFINE_string('split', 'ood', 'With --run: the split of the task.')
  command_line.define_results_flag()
  flags.DEFINE_string('output', 'figures/output', 'Folder to write to.')
  flags.DEFINE_list(
      'format', ['html'], f'Files to write: {", ".join(_FORMATS)}.'
  )


def main() -> None:
  """Draws one picture and prints its files."""
  formats = flags.FLAGS.format
  for name in formats:
    errors.require_choice('--format', name, _FORMATS)
  seed = flags.FLAGS.seed
  rule = 'it must be at least 0 and below 2^32'
  errors.require(0 <= seed < 2**32, '--seed', seed, rule)
  teacher = flags.FLAGS.world == 'hyperteacher' and not flags.FLAGS.run
  for flag, needs, given in (
      ('model', '--run', flags.FLAGS.run),
      (
          'task_support',
          '--run and --model',
          flags.FLAGS.run and flags.FLAGS.model,
      ),
      ('split', '--run', flags.FLAGS.run),
      ('preset', '--world=hyperteacher alone', teacher),
  ):
    unused = flags.FLAGS[flag].present and not given
    rule = f'it needs {needs}'
    errors.require(not unused, f'--{flag}', flags.FLAGS[flag].value, rule)
  if flags.FLAGS.run:
    figure, title, name = _draw_run(seed)
  else:
    world = flags.FLAGS.world
    errors.require_choice('--world', world or '', _WORLDS)
    title = f'A task of {world}, seed {seed}'
    name = f'{world}_{seed}'
    if world == 'hyperteacher':
      preset = flags.FLAGS.preset
      errors.require_choice('--preset', preset, presets.PRESETS)
      figure, _ = fig3a.draw_task(seed, preset)
    else:
      draw = fig4a.WORLDS.get(world) or plugins.resolve(_PICTURES[world])
      figure, _ = draw(seed)
  figure.update_layout(title_text=title)
  folder = files.locate(flags.FLAGS.output, '--output')
  obstacle = None
  with files.writing_to(folder, '--output'):
    folder.mkdir(parents=True, exist_ok=True)
    if 'html' in formats:
      images.write_script(folder)
      page = report.picture_page(figure, name, title)
      files.write_atomically(folder / f'{name}.html', page)
    static = [ending for ending in formats if ending != 'html']
    obstacle = images.export({name: figure}, static, folder)
  written = [e for e in formats if e == 'html' or not obstacle]
  for ending in written:
    print(folder / f'{name}.{ending}')
  if obstacle:
    print(obstacle)


def _draw_run(seed: int) -> tuple[go.Figure, str, str]:
  """Returns the figure of a trained model, its title and its file's name."""
  model, split = flags.FLAGS.model, flags.FLAGS.split
  which = {}
  if model:
    which = {'model': model, 'task_support': flags.FLAGS.task_support}
  loaded = pretrained.load(
      flags.FLAGS.run,
      results_root=command_line.read_root(),
      **which,
  )
  world = loaded.config['task']['name']
  if flags.FLAGS.world not in (None, world):
    raise errors.UserError(
        f"--world is '{flags.FLAGS.world}'; the run's is '{world}'."
    )
  student = loaded.student()
  draw = rollouts.WORLDS.get(world, rollouts.draw_latent)
  name = loaded.config['model']['name']
  title = (
      f'{style.MODEL_NAMES[name]} in a task of {world} ({split}), seed {seed}'
  )
  key = jax.random.fold_in(randomness.stream(student.root, 'picture'), seed)
  figure, _ = draw(student, split, key)
  return figure, title, f'{loaded.run_id}_{split}_{seed}'


if __name__ == '__main__':
  define_flags()
  script.run(main)
