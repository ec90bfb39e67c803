"""Preemption: SIGTERM, SIGHUP and Ctrl-C take effect at once.

A compiled step can take longer than the seconds between a preemption notice
and the kill. Device work therefore runs on a worker thread, while the main
thread, which receives Python's signals, waits for it. Several processes that
train together stop together, between two compiled calls.
"""

from collections.abc import Callable
from concurrent import futures
import signal
import types
from typing import Any

from modular_hyperteacher.devices import multihost

_POLL_SECONDS = 0.1
# A closed terminal sends SIGHUP, unless `nohup` has the process ignore it.
_IS_NOHUP = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
_CALM = (signal.SIGTERM, *(() if _IS_NOHUP else (signal.SIGHUP,)))
SIGNALS = (*_CALM, signal.SIGINT)


class Interrupted(Exception):
  """A signal asks this process to stop; `signal_number` says which."""

  def __init__(self, signal_number: int) -> None:
    super().__init__(signal.Signals(signal_number).name)
    self.signal_number = signal_number


def exit_code(signal_number: int) -> int:
  """Returns the code of a command that saved after a signal."""
  return 0 if signal_number in _CALM else 128 + signal_number


class Guard:
  """Runs functions so that a signal interrupts the wait for them.

  Use as a context manager on the main thread; handlers are restored on exit.
  """

  def __init__(self, signals: tuple[int, ...] = SIGNALS) -> None:
    self._signals = signals
    self.received: int | None = None  # The latest signal.
    self._previous = {}
    self._worker = futures.ThreadPoolExecutor(max_workers=1)

  def __enter__(self) -> 'Guard':
    for number in self._signals:
      self._previous[number] = signal.signal(number, self._receive)
    return self

  def __exit__(self, *_: object) -> None:
    for number, handler in self._previous.items():
      signal.signal(number, handler)
    self._worker.shutdown(wait=False)

  def _receive(self, number: int, frame: types.FrameType | None) -> None:
    del frame
    self.received = number

  def call(self, function: Callable[..., Any], *args: Any) -> Any:
    """Returns `function(*args)`, computed on the worker thread.

    Raises:
      Interrupted: as soon as a signal arrives; the worker's result is lost.
        Never if several processes train together: the others would wait.
    """
    if multihost.number() > 1:
      return function(*args)
    if self.received is not None:
      raise Interrupted(self.received)
    future = self._worker.submit(function, *args)
    while not futures.wait([future], _POLL_SECONDS).done:
      if self.received is not None:
        raise Interrupted(self.received)
    return future.result()

  def agree(self, value: int) -> int:
    """Returns the first process's value.

    Raises:
      Interrupted: on all processes, if a signal has reached any of them.
    """
    gathered = multihost.gather([value, self.received or 0])
    received = int(gathered[:, 1].max())
    if received:
      raise Interrupted(received)
    return int(gathered[0, 0])
