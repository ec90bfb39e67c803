"""A set transformer in PyTorch that learns the hyperteacher in context.

Trains on the laptop preset of Figure 3B, scores test and OOD tasks, and writes
the files of predictions that `make_all.py` draws beside the built-in models:

  pip install -e '.[torch]'
  python examples/pytorch_learner.py --out=predictions
  python figures/make_all.py --only=fig3b --predictions=predictions

The support set is a set of pairs (x, y). Every query is a token that attends to
the support set and to itself, and to no other query; nothing is adapted.
"""

import argparse
import os
import pathlib
import sys
import time

try:
  import torch  # pyright: ignore[reportMissingImports]
  from torch import nn  # pyright: ignore[reportMissingImports]
  from torch.nn import functional  # pyright: ignore[reportMissingImports]
except ImportError:
  print(
      "error: PyTorch is not installed: pip install -e '.[torch]'",
      file=sys.stderr,
  )
  sys.exit(2)

from modular_hyperteacher import errors
from modular_hyperteacher import worlds

_SPLITS = ('test', 'ood')


class SetTransformer(nn.Module):
  """Predicts the logits of queries from a support set."""

  def __init__(
      self, input_dim: int, output_dim: int, width: int, num_layers: int
  ) -> None:
    super().__init__()
    self.embed_pair = nn.Linear(input_dim + output_dim, width)
    self.embed_query = nn.Linear(input_dim, width)
    layer = nn.TransformerEncoderLayer(
        width,
        nhead=4,
        dim_feedforward=4 * width,
        dropout=0.0,
        activation='gelu',
        batch_first=True,
        norm_first=True,
    )
    self.body = nn.TransformerEncoder(
        layer, num_layers, enable_nested_tensor=False
    )
    self.readout = nn.Sequential(
        nn.LayerNorm(width), nn.Linear(width, output_dim)
    )

  def forward(self, pairs: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
    """Returns logits [B, Q, Y] of pairs [B, S, X + Y] and queries [B, Q, X]."""
    num_pairs, number = pairs.shape[1], pairs.shape[1] + queries.shape[1]
    blocked = ~torch.eye(number, dtype=torch.bool)
    blocked[:, :num_pairs] = False
    tokens = [self.embed_pair(pairs), self.embed_query(queries)]
    hidden = self.body(torch.cat(tokens, 1), mask=blocked)
    return self.readout(hidden[:, num_pairs:])


def predict(model: SetTransformer, tasks: worlds.Tasks) -> torch.Tensor:
  """Returns the logits [B, Q, Y] of tasks."""
  inputs, targets, queries = map(
      torch.from_numpy,
      (tasks.support_inputs, tasks.support_targets, tasks.query_inputs),
  )
  return model(torch.cat([inputs, targets], -1), queries)


def train(
    model: SetTransformer,
    world: worlds.World,
    num_steps: int,
    batch_size: int,
    learning_rate: float,
) -> None:
  """Minimises the cross-entropy with the soft labels of training tasks."""
  optimizer = torch.optim.AdamW(model.parameters(), learning_rate)
  schedule = torch.optim.lr_scheduler.OneCycleLR(
      optimizer, learning_rate, num_steps, pct_start=0.05
  )
  report_every = max(num_steps // 10, 1)
  total = 0.0
  for step in range(1, num_steps + 1):
    tasks = world.sample('train', batch_size, seed=step)
    logits = predict(model, tasks)
    loss = functional.cross_entropy(
        logits.flatten(0, 1),
        torch.from_numpy(tasks.query_targets).flatten(0, 1),
    )
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    total += loss.item()
    if step % report_every == 0:
      print(
          f'step {step}: cross-entropy {total / report_every:.3f}', flush=True
      )
      total = 0.0


def main() -> None:
  """Trains, scores and writes the predictions of one seed."""
  parser = argparse.ArgumentParser()
  parser.add_argument('--out', type=pathlib.Path, default='predictions')
  parser.add_argument('--seed', type=int, default=2020)
  parser.add_argument('--task_support', default='random')
  parser.add_argument('--steps', type=int, default=1200)
  parser.add_argument('--batch_size', type=int, default=32)
  parser.add_argument('--width', type=int, default=64)
  parser.add_argument('--layers', type=int, default=3)
  parser.add_argument('--learning_rate', type=float, default=2e-3)
  # Tensors are small: on busy cores, threads cost more than they save.
  parser.add_argument('--threads', type=int, default=1)
  parser.add_argument('--num_tasks', type=int, default=1024)
  flags = parser.parse_args()
  world = worlds.make(
      'hyperteacher', task_support=flags.task_support, seed=flags.seed
  )
  torch.set_num_threads(flags.threads)
  torch.manual_seed(flags.seed)
  dims = world.fields['input_dim'], world.fields['output_dim']
  model = SetTransformer(*dims, flags.width, flags.layers)
  started = time.time(), time.process_time()
  train(model, world, flags.steps, flags.batch_size, flags.learning_rate)
  wall, cpu = time.time() - started[0], time.process_time() - started[1]
  print(
      f'{flags.steps} steps: {wall:.0f} s, {cpu:.0f} CPU seconds; load'
      f' {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores'
  )
  flags.out.mkdir(parents=True, exist_ok=True)
  for split in _SPLITS:
    tasks = world.sample(split, flags.num_tasks)
    with torch.no_grad():
      logits = predict(model, tasks).numpy()
    print(split, world.score(logits, tasks))
    name = f'set_transformer.{flags.task_support}.{split}.{flags.seed}.npz'
    worlds.write_predictions(flags.out / name, logits, world, split)


if __name__ == '__main__':
  try:
    main()
  except errors.UserError as problem:
    print(f'error: {problem}', file=sys.stderr)
    sys.exit(2)
