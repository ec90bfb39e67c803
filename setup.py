"""Installs modular_hyperteacher; `pip install -e '.[test]'` to work on it."""

import setuptools

setuptools.setup(
    name='modular_hyperteacher',
    version='0.1.0',
    description='When do neural networks discover modules that recompose?',
    # configs, figures, launch and studies are linked into the package, so that
    # Python knows one name only.
    packages=setuptools.find_packages(include=['modular_hyperteacher*']),
    package_data={
        'modular_hyperteacher': [
            'py.typed',
            'published/*.csv',
            'configs/campaigns/*.txt',
            'figures/data/**',
            'figures/report/*.c*',
            'figures/report/*.js',
            'figures/report/templates/*',
            'launch/clusters/*.yaml',
            'studies/*/*.csv',
            'studies/*/README.md',
            'studies/*/data/**',
        ],
    },
    entry_points={
        'console_scripts': [
            'modular-hyperteacher = modular_hyperteacher.main:run',
        ],
    },
    python_requires='>=3.11',
    install_requires=[
        'absl-py>=2.5',
        'dm-haiku>=0.0.17',
        'jax>=0.10.2,<0.12',
        'jaxlib>=0.10.2,<0.12',
        # Pages of figures: it escapes what comes from files.
        'jinja2>=3.1',
        'ml-collections>=1.1',
        'numpy>=2.4',
        'optax>=0.2.8',
        'pandas>=3.0',
        'plotly>=6.1.1',
        # Shortest paths, distributions and optimisers.
        'scipy>=1.14',
        # The progress bar that users know.
        'tqdm>=4.70',
    ],
    extras_require={
        'lint': [
            'pandas-stubs==3.1.0.261029',
            'pyink==26.5.1',
            'pyright==1.1.414',
            'ruff==0.17.6',
        ],
        # Several processes: a test suite that compiles is slow on one core.
        'test': [
            'hypothesis>=6.100',
            'markdown>=3.8',
            'pytest>=9.0',
            'pytest-xdist>=3.8',
        ],
        # Static images; the documentation as pages of a site.
        'figures': ['kaleido>=1.0', 'markdown>=3.8'],
        # Sweeps over many machines: launch/ray_cluster.py, launch/slurm.py.
        'ray': ['ray>=2.50'],
        'slurm': ['submitit>=1.5'],
        # examples/pytorch_learner.py.
        'torch': ['torch>=2.4'],
        # Builds examples/tutorial.ipynb from its script, and executes it.
        'tutorial': ['ipykernel>=7.0', 'jupytext>=1.17', 'nbclient>=0.10'],
        # A copy of metrics where groups look at them: --wandb=offline.
        'wandb': ['wandb>=0.31'],
    },
)
