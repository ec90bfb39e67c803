"""A sweep over a Ray cluster of two nodes, one of which is lost on the way.

`python -m tests.launch.engines.ray_nodes --config=... --results=FOLDER` takes
what launch/ray_cluster.py takes. Both nodes are processes of this machine, and
all of them end with it.
"""

import pathlib
import sys
import threading
import time
from typing import Any

import ray  # pyright: ignore[reportMissingImports]
from ray import cluster_utils  # pyright: ignore[reportMissingImports]

from modular_hyperteacher.launch import plan
from modular_hyperteacher.launch import ray_cluster


def _lose(cluster: Any, node: Any, results: pathlib.Path) -> None:
  """Kills a node once both have saved something."""
  training = set()
  while len(training) < 2:
    saved = results.glob('small/smoke/*/checkpoints/[1-9]*')
    folders = {path.parents[1] for path in saved}
    training = {
        folder for folder in folders if not (folder / 'summary.json').exists()
    }
    time.sleep(0.05)
  cluster.remove_node(node, allow_graceful=False)
  print('lost a node', flush=True)


def main() -> None:
  """Starts the cluster, loses a node, and ends as the launcher does."""
  (results,) = (
      pathlib.Path(argument.removeprefix('--results='))
      for argument in sys.argv
      if argument.startswith('--results=')
  )
  cluster = cluster_utils.Cluster(
      initialize_head=True,
      head_node_args={'num_cpus': 1, 'include_dashboard': False},
  )
  node = cluster.add_node(num_cpus=1)
  ray.init(cluster.address, log_to_driver=False)
  assert len(ray.nodes()) == 2
  threading.Thread(
      target=_lose, args=(cluster, node, results), daemon=True
  ).start()
  ray_cluster.define_flags()
  plan.main(ray_cluster.launch, ray_cluster.describe)


if __name__ == '__main__':
  main()
