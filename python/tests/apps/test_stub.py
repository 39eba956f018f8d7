"""The stub of the compiled part says what runs: the made part to the letter, the other by names and
docstrings. The page of all classes says what the stub and the sources say.

With ``WEIR_RENEW`` in the environment the made part, the docstrings and the page are written anew.
"""

import ast
import inspect
import os
import unittest
from pathlib import Path
from typing import Any, Dict, Iterator, List, Set, Tuple, Union

import reference

import weir
from weir import _weir

SOURCE = Path(__file__).resolve().parents[2] / "weir" / "_weir.pyi"

#: Between the part that is written by hand and the one that is made.
LINE = "# " + "-" * 78 + "\n"

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


def declared() -> Dict[str, List[ast.FunctionDef]]:
    """The functions of each class of the stub."""
    stub = Path(_weir.__file__).with_name("_weir.pyi")
    if not stub.is_file():
        stub = Path(weir.__file__).with_name("_weir.pyi")
    classes: Dict[str, List[ast.FunctionDef]] = {}
    for node in ast.parse(stub.read_text()).body:
        if isinstance(node, ast.ClassDef):
            classes[node.name] = [n for n in node.body if isinstance(n, ast.FunctionDef)]
    classes["Switch"] += classes.pop("_Verbs")
    return classes


def parameters(function: Function) -> List[Tuple[str, Any, Any]]:
    """Name, kind and default of each parameter; `...` for a default that is no literal."""
    given = function.args
    kinds: Any = inspect.Parameter
    positional = [(a, kinds.POSITIONAL_ONLY) for a in given.posonlyargs]
    positional += [(a, kinds.POSITIONAL_OR_KEYWORD) for a in given.args]
    defaults: List[Any] = [None] * (len(positional) - len(given.defaults)) + given.defaults
    every = [(a.arg, kind, d) for (a, kind), d in zip(positional, defaults)]
    keywords = zip(given.kwonlyargs, given.kw_defaults)
    every += [(a.arg, kinds.KEYWORD_ONLY, d) for a, d in keywords]
    if given.kwarg is not None:
        every.append((given.kwarg.arg, kinds.VAR_KEYWORD, None))
    return [(name, kind, value(default)) for name, kind, default in every]


def value(default: Any) -> Any:
    """The default of a stub."""
    if default is None:
        return inspect.Parameter.empty
    return ast.literal_eval(default)


def documented(source: str) -> str:
    """The part that is written by hand, with the docstrings of what runs."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            compiled = getattr(_weir, "Switch" if node.name == "_Verbs" else node.name)
            for function in (n for n in node.body if isinstance(n, ast.FunctionDef)):
                doc = inspect.getdoc(getattr(compiled, function.name))
                if doc and not function.name.startswith("__"):
                    found.append((function.body[0], doc))
    lines = source.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    for body, doc in reversed(found):
        assert body.end_lineno is not None and body.end_col_offset is not None
        head = source[: starts[body.lineno - 1] + body.col_offset].rstrip()
        tail = source[starts[body.end_lineno - 1] + body.end_col_offset :]
        text = doc.replace("\n", "\n        ")
        source = f'{head}\n        """{text}"""{tail}'
    return source


def names(functions: List[ast.FunctionDef]) -> Set[str]:
    return {function.name for function in functions if not function.name.startswith("__")}


class StubTest(unittest.TestCase):
    def test_the_made_parts_are_what_the_code_makes(self) -> None:
        written, found, _ = SOURCE.read_text().partition(LINE)
        self.assertTrue(found, SOURCE)
        self.check(SOURCE, documented(written) + found + _weir.made_stub())
        self.check(reference.PAGE, reference.page())

    def check(self, path: Path, made: str) -> None:
        """Compares a file, or writes it."""
        if "WEIR_RENEW" in os.environ:
            path.write_text(made)
        self.assertEqual(path.read_text(), made, "run this test with WEIR_RENEW=1")

    def test_classes_of_apps_are_described_names_of_the_package(self) -> None:
        for name, functions in declared().items():
            if name in reference.INTERNAL:
                continue
            with self.subTest(name):
                if name != "Frame":
                    self.assertIs(getattr(weir, name), getattr(_weir, name))
                    self.assertIn(name, dir(weir))
                for function in functions:
                    is_shown = not function.name.startswith("_")
                    self.assertTrue(ast.get_docstring(function) or not is_shown, function.name)

    def test_the_names_are_those_of_the_module(self) -> None:
        stub = declared()
        self.assertGreater(len(stub), 30)
        classes = {n: v for n, v in vars(_weir).items() if isinstance(v, type)}
        self.assertEqual(set(classes), set(stub))
        for name, value in classes.items():
            own = {n for n in vars(value) if not n.startswith("__")}
            self.assertEqual(own, names(stub[name]), name)

    def test_the_arguments_are_those_that_are_taken(self) -> None:
        count = 0
        for name, function, signature in self.signatures():
            expected = [(p.name, p.kind, p.default) for p in signature.parameters.values()]
            given = parameters(function)
            count += len(given)
            with self.subTest(name):
                for (one, kind, default), (other, other_kind, other_default) in zip(
                    given, expected
                ):
                    self.assertEqual((one, kind), (other, other_kind))
                    if other_default is not ... and default is not ...:
                        self.assertEqual(default, other_default, one)
                self.assertEqual(len(given), len(expected))
        self.assertGreater(count, 100)

    def signatures(self) -> Iterator[Tuple[str, ast.FunctionDef, inspect.Signature]]:
        """Each function of the stub that is a method, with what Python says of its arguments."""
        for class_name, functions in declared().items():
            compiled = getattr(_weir, class_name)
            for function in functions:
                is_property = any(
                    isinstance(d, ast.Name) and d.id == "property" for d in function.decorator_list
                )
                if is_property or (function.name.startswith("__") and function.name != "__new__"):
                    continue
                is_new = function.name == "__new__"
                called = compiled if is_new else getattr(compiled, function.name)
                signature = inspect.signature(called)
                # The class or the object itself.
                (function.args.posonlyargs or function.args.args).pop(0)
                if not is_new:
                    _, *others = signature.parameters.values()
                    signature = signature.replace(parameters=others)
                yield f"{class_name}.{function.name}", function, signature


if __name__ == "__main__":
    unittest.main()
