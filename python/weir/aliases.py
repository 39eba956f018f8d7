"""The modules ``ryu.*`` and ``os_ken.*``, which are those of :mod:`weir.ryu` under both names.

A module that Weir does not have comes from an installed os-ken or Ryu; it is then a module of the
same package, so that the two names never give two copies of a class. Without them the error names
the remedy.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import logging
import os
import sys
from types import ModuleType
from typing import Any, Optional, Sequence

#: The package that has the modules.
HOME = "weir.ryu"

#: The names under which apps import them.
NAMES = ("ryu", "os_ken")

#: In place of modules that neither Weir nor an installed os-ken has.
INSTEAD = {
    "services": "Weir speaks no BGP and no VRRP",
    "lib.ovs": "`weir ctl` sets up bridges, ports and queues",
    "lib.of_config": "Weir has no OF-CONFIG",
    "lib.netconf": "Weir has no NETCONF",
    "contrib": "nothing of an app's own is in it",
    "app": "apps of Ryu are in its source package, and run from there by their files or with its "
    "folder in PYTHONPATH; --rest serves the endpoints of its REST apps",
}

log = logging.getLogger("weir")


def _installed(name: str) -> Optional[str]:
    """The folder of an installed package of this name."""
    for folder in sys.path:
        path = os.path.join(folder or ".", name)
        if os.path.isfile(os.path.join(path, "__init__.py")):
            return path
    return None


def _explain_names(module: ModuleType) -> None:
    """Has the error of a name that a module of Weir's does not have say which it has."""
    is_own = (module.__file__ or "").startswith(os.path.dirname(__file__) + os.sep)
    if is_own and not {"__path__", "__getattr__"} & set(vars(module)):
        from weir.ryu.missing import getter

        shown = NAMES[0] + module.__name__.removeprefix(HOME)
        setattr(module, "__getattr__", getter(module, shown))  # noqa: B010


class _Alias(importlib.abc.Loader):
    """Loads a module that is another one."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


class _Finder(importlib.abc.MetaPathFinder):
    """Finds ``ryu.*`` and ``os_ken.*``."""

    def find_spec(
        self,
        fullname: str,
        path: Optional[Sequence[str]] = None,
        target: Optional[ModuleType] = None,
    ) -> Optional[importlib.machinery.ModuleSpec]:
        head, _, rest = fullname.partition(".")
        if head == "eventlet" and not rest:
            return _eventlet()
        if head not in NAMES:
            return None
        home = f"{HOME}.{rest}" if rest else HOME
        try:
            module = importlib.import_module(home)
        except ModuleNotFoundError as error:
            missing = f"{HOME}.{error.name.partition('.')[2]}" if error.name else ""
            if not f"{home}.".startswith(f"{missing}."):
                raise
            raise ModuleNotFoundError(_missing(fullname, rest), name=fullname) from None
        is_package = hasattr(module, "__path__")
        _explain_names(module)
        return importlib.machinery.ModuleSpec(fullname, _Alias(module), is_package=is_package)


class _Last(importlib.abc.MetaPathFinder):
    """Behind all others: refuses a module of Weir's package that nobody has.

    For ``from ryu.lib import x`` Python looks for a module ``x`` in place of an attribute, and
    takes no word of its error but that it is of another module.
    """

    def find_spec(
        self,
        fullname: str,
        path: Optional[Sequence[str]] = None,
        target: Optional[ModuleType] = None,
    ) -> None:
        if fullname.startswith(f"{HOME}."):
            rest = fullname[len(HOME) + 1 :]
            name = f"{NAMES[0]}.{rest}"
            raise ModuleNotFoundError(_missing(name, rest), name=name)


def _missing(fullname: str, rest: str) -> str:
    text = f"No module named '{fullname}': Weir does not have it"
    for name, instead in INSTEAD.items():
        if rest == name or rest.startswith(f"{name}."):
            text += f" ({instead})"
    if _installed("os_ken") is None and not rest.startswith("app."):
        text += "; `pip install os-ken` brings os-ken's, if that has it"
    return text


class _Unpatched(importlib.abc.Loader):
    """Loads eventlet without its patch of the standard library."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[ModuleType]:
        module: Optional[ModuleType] = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)

        def monkey_patch(*_arguments: Any, **_options: Any) -> None:
            log.warning("eventlet.monkey_patch is left out: apps run on threads of Python here")

        for patched in (module, sys.modules.get(f"{module.__name__}.patcher")):
            if patched is not None:
                setattr(patched, "monkey_patch", monkey_patch)  # noqa: B010


def _eventlet() -> Optional[importlib.machinery.ModuleSpec]:
    spec = importlib.machinery.PathFinder.find_spec("eventlet")
    if spec is not None:
        log.warning("an app imports eventlet: its green threads do not run among Weir's threads")
        spec.loader = _Unpatched(spec.loader)
    return spec


def extend(package: str, folders: Sequence[str]) -> list[str]:
    """The folders of a package of :mod:`weir.ryu`: its own, and behind it the installed ones."""
    rest = package[len(HOME) + 1 :].split(".") if package != HOME else []
    found = [os.path.join(root, *rest) for root in map(_installed, reversed(NAMES)) if root]
    return [*folders, *(folder for folder in found if os.path.isdir(folder))]


def install() -> None:
    """Answers imports of ``ryu`` and ``os_ken`` from now on."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
        sys.meta_path.append(_Last())


def explain_names() -> None:
    """The same for the modules that are loaded; later ones have it when an app imports them."""
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{HOME}."):
            _explain_names(module)
