"""Finds and loads trained models, and runs them on new tasks."""

from modular_hyperteacher.pretrained.loading import available as available
from modular_hyperteacher.pretrained.loading import FOLDER as FOLDER
from modular_hyperteacher.pretrained.loading import load as load
from modular_hyperteacher.pretrained.loading import Pretrained as Pretrained
