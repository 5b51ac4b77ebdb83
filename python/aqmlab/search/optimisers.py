"""Ask and tell: which values come next, by optuna or by CMA-ES.

Both choose positions from 0 to 1. What they ask depends on the seed and on the values told, so a
search is repeated by telling the same values again: that is how it resumes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from aqmlab.errors import input_error
from aqmlab.search.keys import Key

SIGMA = 0.3
"""Initial step of CMA-ES, of the range of a key (Hansen, The CMA Evolution Strategy)."""
Places = list[float]


def load(name: str) -> Any:
    """A library of the extra `search`. Raises `InputError` without it."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        problem = f"this needs the package {name}: pip install 'aqmlab[search]'"
        raise input_error(problem) from None
    except AttributeError:  # cma takes its docstrings apart
        if sys.flags.optimize < 2:
            raise
        raise input_error(f"PYTHONOPTIMIZE=2: {name} needs its docstrings; 1 keeps them") from None


class Tuner:
    """Optuna's tree-structured Parzen estimator, for one goal or several."""

    def __init__(self, keys: Sequence[Key], goals: int, seed: int, startup: int) -> None:
        optuna = load("optuna")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._failed = optuna.trial.TrialState.FAIL
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # options that optuna calls experimental
            sampler = optuna.samplers.TPESampler(
                seed=seed, multivariate=True, constant_liar=True, n_startup_trials=startup
            )
        self._study = optuna.create_study(directions=["minimize"] * goals, sampler=sampler)
        self._space: dict[str, Any] = {}
        self._choices = {f"{key.name}[0]": len(key.choices) for key in keys if key.choices}
        for name in [f"{key.name}[{number}]" for key in keys for number in range(key.size)]:
            if name in self._choices:
                places = range(self._choices[name])
                self._space[name] = optuna.distributions.CategoricalDistribution(places)
            else:
                self._space[name] = optuna.distributions.FloatDistribution(0.0, 1.0)
        self._asked: list[Any] = []

    def ask(self, count: int) -> list[Places]:
        """So many positions."""
        self._asked = [self._study.ask(self._space) for _ in range(count)]
        return [[self._place(name, trial.params[name]) for name in self._space]
                for trial in self._asked]  # fmt: skip

    def _place(self, name: str, value: Any) -> float:
        return (value + 0.5) / self._choices[name] if name in self._choices else float(value)

    def tell(self, values: Sequence[Sequence[float] | None]) -> None:
        """The values of the last positions."""
        for trial, found in zip(self._asked, values, strict=True):
            if found is None:
                self._study.tell(trial, state=self._failed)
            else:
                self._study.tell(trial, list(found))


class Attacker:
    """CMA-ES with bounds; it begins again elsewhere when it has converged."""

    def __init__(self, keys: Sequence[Key], seed: int, batch: int) -> None:
        self._cma = load("cma")
        self._dimensions = max(2, sum(key.size for key in keys))  # CMA-ES needs two
        self._used = sum(key.size for key in keys)
        self._random = np.random.default_rng(seed)
        self._batch = batch
        self._strategy = self._begin([0.5] * self._dimensions)
        self._asked: list[Any] = []

    def _begin(self, start: Sequence[float]) -> Any:
        options = {
            "bounds": [0.0, 1.0],
            "popsize": self._batch,
            "verbose": -9,
            "seed": float("nan"),  # its draws are those of `randn`, not of a global generator
            "randn": lambda *shape: self._random.standard_normal(shape),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._cma.CMAEvolutionStrategy(list(start), SIGMA, options)

    def ask(self, count: int) -> list[Places]:
        """So many positions, as many as the batch."""
        if self._strategy.stop():
            self._strategy = self._begin(list(self._random.uniform(0.2, 0.8, self._dimensions)))
        self._asked = self._strategy.ask(count)
        return [[float(each) for each in places[: self._used]] for places in self._asked]

    def tell(self, values: Sequence[Sequence[float] | None]) -> None:
        """The values of the last positions; an invalid one is worse than all others."""
        known = [each[0] for each in values if each is not None]
        worst = max(known, default=0.0) + 1.0
        self._strategy.tell(self._asked, [worst if each is None else each[0] for each in values])


Optimiser = Tuner | Attacker
