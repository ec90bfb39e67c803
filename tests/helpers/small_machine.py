"""`modular_hyperteacher.main`, as on a machine with 16 GiB of memory."""

from modular_hyperteacher import main
from modular_hyperteacher.runs import memory

memory._available = lambda: 16 * 2**30
run = main.run
