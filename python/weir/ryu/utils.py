"""``ryu.utils``."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType

from weir import aliases


def chop_py_suffix(path: str) -> str:
    """The path without ``.py``."""
    for suffix in (".py", ".pyc", ".pyo"):
        if path.endswith(suffix):
            return path[: -len(suffix)]
    return path


def canonical(name: str) -> str:
    """The name of the module that a name of Ryu or os-ken stands for."""
    head, dot, rest = name.partition(".")
    return f"{aliases.HOME}{dot}{rest}" if head in aliases.NAMES else name


def import_module(name: str) -> ModuleType:
    """A module by its name, or by the path of its file."""
    if not (name.endswith(".py") or os.sep in name):
        return importlib.import_module(canonical(name))
    path = os.path.abspath(name if name.endswith(".py") else f"{name}.py")
    if not os.path.isfile(path):
        raise ModuleNotFoundError(f"{name}: no such file", name=name)
    module_name = os.path.basename(chop_py_suffix(path))
    loaded = sys.modules.get(module_name)
    if loaded is not None and os.path.abspath(getattr(loaded, "__file__", "") or "") == path:
        return loaded
    folder = os.path.dirname(path)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{name}: no Python file", name=name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(module_name, None)
        raise
    return module


def round_up(x: int, y: int) -> int:
    """The least multiple of ``y`` that is not below ``x``, nor below zero: of lengths that a switch
    gives some are wrong, and who steps by them must not step back."""
    return (max(x, 0) + y - 1) // y * y


def hex_array(data: bytes) -> str:
    """The bytes as ``0x01 0x02``."""
    return " ".join(f"0x{byte:02x}" for byte in bytes(data))


def binary_str(data: bytes) -> str:
    """The bytes as ``\\x01\\x02``."""
    return "".join(f"\\x{byte:02x}" for byte in bytes(data))


bytearray_to_hex = hex_array
