"""Which studies can be reproduced, and where they are.

A study is a folder with `study.toml` and `published.toml`: one that a package names (entry point
`aqmlab.studies`, a module in that folder), or any folder, by its path. aqmlab's own are such a
package, `aqmlab_studies`: installed, or in the checkout that this file is in. A study without code
may be a single file: `published.toml` with a table `study`.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from aqmlab.errors import CustomError, input_error, unknown

GROUP = "aqmlab.studies"
"""The entry point of packages that bring studies."""
OWN, IN_FOLDERS = "aqmlab_studies.", "aqmlab_study_"
"""How the packages of aqmlab's own studies begin, and of those that are given as folders."""
CHECKOUT = Path(__file__).parents[3] / "studies"
"""The distribution of aqmlab's own studies, where aqmlab is installed in place."""
INSTALL = "pip install 'aqmlab[studies]'"
MAIN, PUBLISHED, HOOKS = "study.toml", "published.toml", "study.py"


@dataclass(frozen=True)
class StudyPlace:
    """A study: its name, its folder, and the package that its `study.py` is in."""

    name: str
    folder: Path
    package: str
    file: Path | None = None
    """Where all of it is one file: `published.toml` with the study as the table `study`."""

    @property
    def title(self) -> str:
        """The title in `study.toml`."""
        table = tomllib.loads((self.file or self.folder / MAIN).read_text(encoding="utf-8"))
        return str((table.get("study", {}) if self.file else table).get("title", self.name))

    def hooks(self) -> ModuleType | None:
        """The module `study.py`, which may import others beside it (`from . import claims`);
        None if there is none.

        Raises `CustomError` if it fails.
        """
        file = self.folder / HOOKS
        if self.file is not None or not file.exists():
            return None
        try:
            if self.package.startswith(IN_FOLDERS):
                _make_package(self.package, self.folder)
            return importlib.import_module(f"{self.package}.study")
        except Exception as error:
            if self.package.startswith(OWN):
                raise
            raise CustomError(f"{file}: {type(error).__name__}: {error}") from error


def _make_package(name: str, folder: Path) -> None:
    """A package of the files in `folder`, whether it has an `__init__.py` or not; they are read
    anew, as they may have been edited since."""
    for known in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
        del sys.modules[known]
    init = folder / "__init__.py"
    spec = importlib.util.spec_from_file_location(
        name, init if init.exists() else None, submodule_search_locations=[str(folder)]
    )
    if spec is None:
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if spec.loader is not None:
        spec.loader.exec_module(module)


def places() -> Mapping[str, StudyPlace]:
    """The studies that are known by name.

    Raises `InputError` if an installed package names one that does not exist.
    """
    found: dict[str, StudyPlace] = {}
    for name, module in _named():
        spec = _spec(module)
        if spec is None or spec.origin is None:
            problem = "an installed package names a study that does not exist"
            raise input_error(problem, key=GROUP, given=f"{name} = {module}")
        package = module if spec.submodule_search_locations else module.rpartition(".")[0]
        found.setdefault(name, StudyPlace(name, Path(spec.origin).parent, package))
    return found


def _named() -> Iterator[tuple[str, str]]:
    """Names of studies and their modules: of the checkout, then of installed packages."""
    project = CHECKOUT / "pyproject.toml"
    if project.is_file():
        if str(CHECKOUT) not in sys.path:
            sys.path.append(str(CHECKOUT))
        table = tomllib.loads(project.read_text(encoding="utf-8"))
        yield from table["project"]["entry-points"][GROUP].items()
    for each in entry_points(group=GROUP):
        yield each.name, each.value


def _spec(module: str) -> importlib.machinery.ModuleSpec | None:
    """The module's place, without loading it; None if there is none."""
    try:
        return importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None


def place(name: str) -> StudyPlace:
    """The study of this name, or in the folder of this path.

    Raises `InputError` if there is none.
    """
    known = places()
    if name in known:
        return known[name]
    folder = Path(name)
    if folder.suffix == ".toml" and folder.is_file():
        return StudyPlace(folder.stem, folder.resolve().parent, "", folder.resolve())
    if not folder.is_dir():
        if "/" in name:
            raise input_error("there is no such folder or file", key="name", given=name)
        if not known:
            problem = f"no studies are installed; {INSTALL} brings the published ones"
            raise input_error(problem, key="name", given=name)
        raise unknown("study", name, known)
    for file in (MAIN, PUBLISHED):
        if not (folder / file).is_file():
            hint = "`aqmlab reproduce --new NAME` creates a complete folder"
            raise input_error(f"a study needs {file}", file=str(folder), hint=hint)
    folder = folder.resolve()
    return StudyPlace(folder.name, folder, f"{IN_FOLDERS}{folder.name}".replace("-", "_"))
