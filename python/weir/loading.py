"""Finds the apps in a file, and takes the file again when it has changed."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Dict, List, Optional, Sequence, Tuple, Type, Union

from weir.app import App
from weir.errors import WeirError

#: The name under which a file is imported.
_MODULE = "weir_app"


class LoadError(WeirError):
    """A file without apps, or one that Python refuses."""


def made(apps: Sequence[Union[Type[App], App]]) -> List[App]:
    """The apps themselves, of classes too."""
    values = []
    for app in apps:
        value = app() if isinstance(app, type) else app
        if not isinstance(value, App):
            raise TypeError(f"{app!r} is no weir.App")
        values.append(value)
    return values


def classes_of(module: ModuleType) -> List[Type[App]]:
    """The apps' classes that a module defines, in their order.

    A class that another one of the module builds on is no app of its own, nor is one whose name
    begins with ``_``.
    """
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, App)
        and value.__module__ == module.__name__
        and not value.__name__.startswith("_")
    ]
    unique = list(dict.fromkeys(found))
    bases = {base for value in unique for base in value.__mro__[1:]}
    return [value for value in unique if value not in bases]


class Source:
    """The file that apps come from, with the files beside it that it imports."""

    def __init__(self, path: Path) -> None:
        self.path = path
        #: The file's module, once it is loaded.
        self.module: Optional[ModuleType] = None
        self._classes: List[str] = []
        self._seen: Dict[Path, Tuple[int, int]] = {}

    @classmethod
    def of_classes(cls, apps: Sequence[Union[Type[App], App]]) -> "Source":
        """The file in which these classes stand."""
        types = [app if isinstance(app, type) else type(app) for app in apps]
        files = {inspect.getfile(value) for value in types}
        if len(files) != 1:
            raise WeirError(f"--reload needs all apps in one file; they stand in {sorted(files)}")
        source = cls(Path(files.pop()))
        source._classes = [value.__name__ for value in types]
        source._note()
        return source

    def load(self) -> List[App]:
        """The apps of the file as it is now.

        Raises :class:`LoadError`.
        """
        self._note()
        if not self.path.is_file():
            raise LoadError(f"{self.path}: no such file")
        folder = str(self.path.resolve().parent)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        self._forget()
        spec = importlib.util.spec_from_file_location(_MODULE, self.path)
        if spec is None or spec.loader is None:
            raise LoadError(f"{self.path}: no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[_MODULE] = module
        try:
            spec.loader.exec_module(module)
            classes = self._chosen(module)
            apps = made(classes)
        except LoadError:
            raise
        except (Exception, SystemExit) as error:
            raise LoadError(f"{self.path}: {described(error)}") from error
        self._note()
        self.module = module
        return apps

    def _chosen(self, module: ModuleType) -> List[Type[App]]:
        if self._classes:
            missing = [name for name in self._classes if not hasattr(module, name)]
            if missing:
                raise LoadError(f"{self.path}: {', '.join(missing)} is no longer there")
            return [getattr(module, name) for name in self._classes]
        classes = classes_of(module)
        if not classes:
            raise LoadError(f"{self.path}: no class of weir.App in it; write `class Hub(weir.App)`")
        return classes

    def has_changed(self) -> bool:
        """Whether a file has changed since it was loaded."""
        return any(_state(path) != seen for path, seen in self._seen.items())

    def _modules(self) -> Dict[str, Path]:
        """What was imported from the file's folder."""
        folder = self.path.resolve().parent
        found = {}
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if name == "__main__" or not isinstance(file, str):
                continue
            path = Path(file).resolve()
            if folder in path.parents and "site-packages" not in path.parts:
                found[name] = path
        return found

    def _forget(self) -> None:
        for name in self._modules():
            if name.partition(".")[0] != "weir":
                del sys.modules[name]
        importlib.invalidate_caches()

    def _note(self) -> None:
        paths = {self.path.resolve(), *self._modules().values()}
        self._seen = {path: _state(path) for path in paths}


def _state(path: Path) -> Tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


def described(error: BaseException) -> str:
    """An exception with its traceback, without the frames of this package and of the import."""
    frames = traceback.extract_tb(error.__traceback__)
    folders = (os.path.dirname(file) + os.sep for file in (__file__, importlib.util.__file__))
    hidden = (*folders, "<frozen importlib._bootstrap")
    own = [frame for frame in frames if not frame.filename.startswith(hidden)]
    lines = traceback.format_list(own) + traceback.format_exception_only(type(error), error)
    # A syntax error names its own place.
    is_whole = own or isinstance(error, SyntaxError)
    return "".join(lines).rstrip() if is_whole else lines[-1].rstrip()
