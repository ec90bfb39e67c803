"""Models that figures know, and those that they do not."""

import pytest

from modular_hyperteacher.figures.plotting import style


def test_models_have_styles_of_their_own() -> None:
  styles = [style.model_style(model) for model in style.MODELS]
  assert len({colour for _, colour in styles}) == len(styles)


def test_an_unknown_model_has_a_style_that_depends_on_its_name_alone() -> None:
  known = {style.model_style(model)[1] for model in style.MODELS}
  label, colour = style.model_style('my_own_model')
  assert label == 'my own model'
  assert (label, colour) == style.model_style('my_own_model')
  assert colour not in known


def test_unknown_models_come_last_by_name() -> None:
  shuffled = ['zebra', 'maml', 'aardvark', 'anil', 'maml']
  assert style.sort_models(shuffled) == ['anil', 'maml', 'aardvark', 'zebra']


@pytest.mark.parametrize(
    'split, name',
    [
        ('ood', 'OOD'),
        ('ood_k4', 'OOD, k = 4'),
        ('all_k2', 'all, k = 2'),
        ('ood_common', 'ood common'),
        ('ood_unknown_terms', 'ood unknown terms'),
        ('valid_fixed_context', 'valid fixed context'),
    ],
)
def test_every_split_has_a_name(split: str, name: str) -> None:
  assert style.split_name(split) == name
