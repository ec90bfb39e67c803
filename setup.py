"""Installs modular_hyperteacher; `pip install -e '.[test]'` to work on it."""

import setuptools

setuptools.setup(
    name='modular_hyperteacher',
    version='0.1.0',
    description='When do neural networks discover modules that recompose?',
    packages=setuptools.find_packages(include=['modular_hyperteacher*']),
    python_requires='>=3.11',
    install_requires=[
        'absl-py>=2.1',
        'dm-haiku>=0.0.16',
        # Multi-host checkpoints without pickle, written atomically.
        'jax>=0.8',
        'jaxlib>=0.8',
        'ml-collections>=1.0',
        'numpy>=2.0',
        'optax>=0.2.6',
        'orbax-checkpoint>=0.11',
        'pandas>=2.2',
        'plotly>=6.1',
        'tqdm>=4.66',
    ],
    extras_require={
        'test': ['hypothesis>=6.100', 'pytest>=8.0'],
        'figures': ['kaleido>=1.0'],
    },
)
