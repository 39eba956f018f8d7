"""``ryu.cfg``: options of apps, in the manner of oslo.config.

Options are registered by apps when they are imported; values come from the command line, from
``--config-file`` and from the defaults. Reading one that is not registered is an error.
"""

from __future__ import annotations

import configparser
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple


class NoSuchOptError(AttributeError):
    """An option that nobody has registered."""


class NoSuchGroupError(NoSuchOptError):
    """A group of options that nobody has registered."""


class ConfigFilesNotFoundError(Exception):
    """A configuration file that is not there."""


def _bool(text: Any) -> bool:
    word = str(text).lower()
    if word in ("true", "1", "yes", "on"):
        return True
    if word in ("false", "0", "no", "off"):
        return False
    raise ValueError(f"{text!r} is neither true nor false")


def _list(item: Callable[[str], Any]) -> Callable[[Any], List[Any]]:
    def read(text: Any) -> List[Any]:
        if isinstance(text, str):
            return [item(part.strip()) for part in text.split(",") if part.strip()]
        return list(text)

    return read


class Opt:
    """An option."""

    read: Callable[[Any], Any] = staticmethod(lambda text: text)
    is_flag = is_multi = False

    def __init__(
        self,
        name: str,
        default: Any = None,
        help: Optional[str] = None,
        short: Optional[str] = None,
        **_others: Any,
    ) -> None:
        self.name, self.default, self.help, self.short = name, default, help, short
        self.dest = name.replace("-", "_")


class StrOpt(Opt):
    read = str


class IntOpt(Opt):
    read = staticmethod(lambda text: int(str(text), 0))


class PortOpt(IntOpt):
    pass


class FloatOpt(Opt):
    read = float


class BoolOpt(Opt):
    read = staticmethod(_bool)
    is_flag = True


class ListOpt(Opt):
    def __init__(self, name: str, item_type: Any = str, **others: Any) -> None:
        super().__init__(name, **others)
        self.read = _list(item_type)


class MultiStrOpt(Opt):
    is_multi = True

    def __init__(self, name: str, positional: bool = False, **others: Any) -> None:
        super().__init__(name, **others)


MultiOpt = MultiStrOpt


class OptGroup:
    """The name of a group of options."""

    def __init__(self, name: str, title: Optional[str] = None, help: Optional[str] = None) -> None:
        self.name, self.title, self.help = name, title, help


class Group:
    """Options with their values."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._opts: Dict[str, Opt] = {}
        self._values: Dict[str, Any] = {}

    def _add(self, opt: Opt) -> None:
        self._opts.setdefault(opt.dest, opt)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        opt = self._opts.get(name)
        if opt is None:
            raise NoSuchOptError(f"no such option {name} in group [{self._name}]")
        if name in self._values:
            return opt.read(self._values[name])
        return opt.default

    __getitem__ = __getattr__

    def __contains__(self, name: str) -> bool:
        return name in self._opts

    def __iter__(self) -> Any:
        return iter(self._opts)

    def get(self, name: str, default: Any = None) -> Any:
        """The value, or another one if there is no such option."""
        return self[name] if name in self else default


class ConfigOpts(Group):
    """All options: those of no group, and the groups."""

    def __init__(self) -> None:
        super().__init__("DEFAULT")
        self._groups: Dict[str, Group] = {}
        self._files: List[Tuple[str, configparser.RawConfigParser]] = []

    def __getattr__(self, name: str) -> Any:
        groups = self.__dict__.get("_groups", {})
        if name in groups:
            return groups[name]
        return super().__getattr__(name)

    __getitem__ = __getattr__

    def _group(self, group: Any) -> Group:
        if group is None:
            return self
        name = group if isinstance(group, str) else group.name
        return self._groups.setdefault(name, Group(name))

    def register_group(self, group: OptGroup) -> None:
        """Makes a group known."""
        self._group(group)

    def register_opt(self, opt: Opt, group: Any = None, cli: bool = False) -> None:
        """Makes an option known."""
        home = self._group(group)
        home._add(opt)
        for _, file in self._files:
            self._take(home, file)

    register_cli_opt = register_opt

    def register_opts(self, opts: Sequence[Opt], group: Any = None) -> None:
        """Makes options known."""
        for opt in opts:
            self.register_opt(opt, group)

    register_cli_opts = register_opts

    def set_override(self, name: str, value: Any, group: Any = None) -> None:
        """Gives an option a value."""
        self._group(group)._values[name.replace("-", "_")] = value

    def set_default(self, name: str, value: Any, group: Any = None) -> None:
        """Gives an option another default."""
        home = self._group(group)
        opt = home._opts.get(name.replace("-", "_"))
        if opt is None:
            raise NoSuchOptError(f"no such option {name} in group [{home._name}]")
        opt.default = value

    def import_opt(self, name: str, module: str, group: Any = None) -> None:
        """Imports the module that registers an option."""
        __import__(module)

    def read_file(self, path: str) -> None:
        """Takes the values of a configuration file."""
        file = configparser.RawConfigParser(default_section="\0")
        if not file.read(path):
            raise ConfigFilesNotFoundError(f"{path}: no such configuration file")
        self._files.append((path, file))
        for home in (self, *self._groups.values()):
            self._take(home, file)

    @staticmethod
    def _take(home: Group, file: configparser.RawConfigParser) -> None:
        if file.has_section(home._name):
            for name, value in file.items(home._name):
                home._values.setdefault(name.replace("-", "_"), value)

    def read_arguments(self, arguments: Sequence[str]) -> List[str]:
        """Takes the values of a command line; gives back the words that are no option."""
        rest, words = [], list(arguments)
        while words:
            word = words.pop(0)
            name, equals, value = word.partition("=")
            found = self._of_word(name)
            if found is None:
                rest.append(word)
                continue
            home, opt, is_negated = found
            if opt.is_flag and not equals:
                home._values[opt.dest] = not is_negated
                continue
            if not equals:
                if not words:
                    raise ValueError(f"{name} needs a value")
                value = words.pop(0)
            opt.read(value)
            if opt.is_multi:
                home._values.setdefault(opt.dest, []).append(value)
            else:
                home._values[opt.dest] = value
        return rest

    def _of_word(self, word: str) -> Optional[Tuple[Group, Opt, bool]]:
        if not word.startswith("--"):
            return None
        for home in (self, *self._groups.values()):
            prefix = "" if home is self else f"{home._name}-"
            for opt in home._opts.values():
                name = f"{prefix}{opt.name}".replace("_", "-")
                if word[2:].replace("_", "-") == name:
                    return (home, opt, False)
                if opt.is_flag and word[2:].replace("_", "-") == f"no{name}":
                    return (home, opt, True)
        return None

    def __call__(
        self,
        args: Optional[Sequence[str]] = None,
        default_config_files: Optional[Sequence[str]] = None,
        **_others: Any,
    ) -> List[str]:
        for path in default_config_files or []:
            self.read_file(path)
        return self.read_arguments(args or [])

    def clear(self) -> None:
        """Forgets all values."""
        for home in (self, *self._groups.values()):
            home._values.clear()


CONF = ConfigOpts()
