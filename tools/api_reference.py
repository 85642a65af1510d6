"""Generate docs/reference/api.md and errors.md from the source of the documented import paths.

The source is parsed, not imported, so that signatures look as they were written, whatever the Python version.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages

from donewhen.foundation.errors import DonewhenError, ExitCode

# In the order of the page. A name is described under the first path that has it, and only listed under the others.
PATHS = (
    "donewhen.completion",
    "donewhen.jobs",
    "donewhen.jobs.board.survey",
    "donewhen.jobs.audit.audit",
    "donewhen.jobs.evidence.requirements",
    "donewhen.judging",
    "donewhen.learning",
    "donewhen.models",
    "donewhen.contrib.tools",
    "donewhen.contrib.tools.planning",
    "donewhen.dataclasses",
    "donewhen.prompt",
    "donewhen.runtime",
    "donewhen.filesystem",
    "donewhen.config",
    "donewhen.testing",
    "donewhen.testing.messages_api",
    "donewhen.testing.responses_api",
    "donewhen.testing.contract",
    "donewhen.adapters",
    "donewhen.adapters.claude_agent_sdk",
    "donewhen.adapters.guard_choice",
    "donewhen.adapters.scripted",
    "donewhen.protocols",
    "donewhen.foundation.errors",
    "donewhen.cli",
    "donewhen",
)

_WIDE = 100
_LONG_VALUE = 400

_EXIT_MEANINGS = {
    ExitCode.PASS: "Success: what was checked is done.",
    ExitCode.GATE_FAILED: "The work was checked and is not done, or a budget is spent.",
    ExitCode.USAGE: "The command line, a setting, a path or the installation is wrong. Nothing was checked.",
    ExitCode.INTERNAL: "No result: a check is broken, or donewhen had an internal error.",
    ExitCode.INTERRUPTED: "Interrupted with Ctrl-C.",
}


def api_page() -> str:
    """Return the page with every public name of every documented path, its signature and its docstring."""
    homes: dict[Definition, str] = {}
    for path in PATHS:
        for name in public_names(path):
            homes.setdefault(definition(path, name), path)
    lines = [
        "# Python reference",
        "",
        "All public import paths, with their names. They can be imported without any extra installed.",
        "A name is described once, under the first path that has it.",
        "",
        "In signatures, `Checkable` is anything that can be used as a checker: an object with a `check` method, plain",
        "or async (`AnyChecker`), or a function of the context (`CheckFunction`).",
        "",
        *(f"- [`{path}`](#{path.replace('.', '')}): {_first_sentence(path)}" for path in PATHS),
        "",
    ]
    for path in PATHS:
        lines += [f"## {path}", "", prose(_docstring_of(path)), ""]
        described = {name: definition(path, name) for name in public_names(path)}
        for name, target in described.items():
            if homes[target] == path:
                lines += _entry(name, target)
        for home in PATHS:
            names = [f"`{name}`" for name, target in described.items() if homes[target] == home != path]
            if names:
                lines += [f"The same as in [`{home}`](#{home.replace('.', '')}): {', '.join(names)}.", ""]
    return "\n".join(lines)


def errors_page() -> str:
    """Return the page with the exit statuses and every error that is raised on purpose."""
    lines = [
        "# Errors and exit statuses",
        "",
        "## Exit statuses",
        "",
        "Every command ends with one of these.",
        "",
        "| status | name | meaning |",
        "| --- | --- | --- |",
        *(f"| {status.value} | `{status.name}` | {_EXIT_MEANINGS[status]} |" for status in ExitCode),
        "",
        "## Errors",
        "",
        "Every error that donewhen raises on purpose derives from `DonewhenError`. Each has a `message`, a `code` and",
        "an `exit_code`; some have `where` (a file and line, or an option) and `next_step` (what to do about it).",
        "Constructors raise plain `ValueError` and `TypeError` for invalid arguments.",
        "",
        "A checker does not raise to refuse. It returns an incomplete result with a [reason code](reasons.md).",
        "",
        "| error | import it from | code | exit status | meaning |",
        "| --- | --- | --- | --- | --- |",
    ]
    for error in _errors():
        meaning = prose(inspect.getdoc(error) or "").split("\n\n")[0].replace("\n", " ")
        code = f"`{error.code}` | {error.exit_code.value}"
        lines.append(f"| `{error.__name__}` | `{_import_path(error)}` | {code} | {meaning} |")
    return "\n".join([*lines, ""])


def _errors() -> list[type[DonewhenError]]:
    package = import_module("donewhen")
    for info in walk_packages(package.__path__, "donewhen."):
        if not info.name.endswith("__main__"):
            import_module(info.name)
    errors = [DonewhenError]
    for error in errors:
        errors += [kind for kind in error.__subclasses__() if kind.__module__.startswith("donewhen.")]
    # Sorted by module as well, because two rooms may have an error of the same name.
    return sorted(set(errors), key=lambda kind: (kind is not DonewhenError, kind.__name__, kind.__module__))


def _import_path(error: type[DonewhenError]) -> str:
    name = error.__name__
    homes = (path for path in PATHS if name in public_names(path) and getattr(import_module(path), name) is error)
    return next(homes, error.__module__)


@dataclass(frozen=True)
class Definition:
    """The definition of a name: its module, its statement and its docstring."""

    module: str
    node: ast.stmt
    doc: str


def public_names(path: str) -> list[str]:
    """Return ``__all__``; without it, the public functions and classes that are defined there."""
    for node in module(path).body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        ):
            return sorted(ast.literal_eval(node.value), key=str.casefold)
    defined = (node for node in module(path).body if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return [node.name for node in defined if not node.name.startswith("_")]


@cache
def module(path: str) -> ast.Module:
    spec = find_spec(path)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(path)
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))


@cache
def definition(path: str, name: str) -> Definition:
    """Follow imports from ``path`` to the statement that defines ``name``."""
    statements = list(_top_level(module(path).body))
    for number, node in enumerate(statements):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return Definition(path, node, ast.get_docstring(node) or "")
        if name in _assigned(node):
            return Definition(path, node, _following_docstring(statements, number))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("donewhen"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return definition(node.module, alias.name)
    raise LookupError(f"{path} has no {name}")


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from _top_level(node.body)


def _assigned(node: ast.stmt) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _following_docstring(statements: list[ast.stmt], number: int) -> str:
    """Return the string right below an assignment, which documents a constant or a field."""
    following = statements[number + 1] if number + 1 < len(statements) else None
    if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
        text = following.value.value
        return inspect.cleandoc(text) if isinstance(text, str) else ""
    return ""


def _docstring_of(path: str) -> str:
    return ast.get_docstring(module(path)) or ""


def _first_sentence(path: str) -> str:
    return prose(_docstring_of(path)).split("\n\n")[0].replace("\n", " ")


def _entry(name: str, found: Definition) -> list[str]:
    node = found.node
    lines = [f"### {name}", "", "```py"]
    if isinstance(node, ast.ClassDef):
        lines += [_class_signature(found, node), "```", ""]
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        lines += [_function_signature(node), "```", ""]
    else:
        lines += [_assignment(node), "```", ""]
    if found.doc:
        lines += [prose(found.doc), ""]
    if isinstance(node, ast.ClassDef):
        members = [line for ancestor in _lineage(found, node) for line in _members(ancestor)]
        lines += [*dict.fromkeys(members), ""] if members else []
    return lines


def _lineage(found: Definition, node: ast.ClassDef) -> list[ast.ClassDef]:
    """Return the class and its bases in private files, whose members are not described elsewhere."""
    classes = [node]
    for base in node.bases:
        name = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
        try:
            above = definition(found.module, name)
        except LookupError:
            continue
        if "._" in above.module and isinstance(above.node, ast.ClassDef):
            classes += _lineage(above, above.node)
    return classes


def _assignment(node: ast.stmt) -> str:
    written = ast.unparse(node)
    if len(written) <= _LONG_VALUE:
        return written
    # A long value is data with its own page; only its type is shown.
    return f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}" if isinstance(node, ast.AnnAssign) else written


def _class_signature(found: Definition, node: ast.ClassDef) -> str:
    bases = list(map(ast.unparse, node.bases))
    parameters = _constructor(_lineage(found, node))
    head = f"class {node.name}" + (f"({', '.join(bases)})" if bases else "")
    if parameters is None:
        return head
    # Without bases, one line is enough.
    return f"{head}\n\n{_call(node.name, parameters)}" if bases else f"class {_call(node.name, parameters)}"


def _constructor(lineage: list[ast.ClassDef]) -> list[str] | None:
    """Return the parameters of the constructor; None if it is not called (protocols, enumerations, plain errors)."""
    for statement in (statement for node in lineage for statement in node.body):
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            return _parameters(statement.args)[1:]
    node = lineage[0]
    is_dataclass = any(_called(decorator) == "dataclass" for decorator in node.decorator_list)
    if is_dataclass or "NamedTuple" in map(ast.unparse, node.bases):
        return [text for ancestor in reversed(lineage) for text, _, initialised in _fields(ancestor) if initialised]
    if not node.bases:
        return []
    return None


def _called(node: ast.expr) -> str:
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str, bool]]:
    """Yield the public annotated fields of a class: as a parameter, the docstring, and whether it is a parameter."""
    for number, statement in enumerate(node.body):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        name = statement.target.id
        kind = ast.unparse(statement.annotation)
        if name.startswith("_") or kind.startswith("ClassVar"):
            continue
        default, initialised = _default(statement.value)
        yield f"{name}: {kind}{default}", _following_docstring(node.body, number), initialised


def documented_fields(node: ast.ClassDef) -> dict[str, str]:
    """Return the docstrings of the public fields of a class by name, as Markdown on one line."""
    return {text.split(":")[0]: _on_one_line(doc) for text, doc, _ in _fields(node)}


def _default(value: ast.expr | None) -> tuple[str, bool]:
    if value is None:
        return "", True
    if not (isinstance(value, ast.Call) and _called(value) == "field"):
        return f" = {ast.unparse(value)}", True
    given = {keyword.arg: keyword.value for keyword in value.keywords if keyword.arg}
    initialised = not ("init" in given and ast.unparse(given["init"]) == "False")
    if "default_factory" in given:
        factory = given["default_factory"]
        made = ast.unparse(factory.body) if isinstance(factory, ast.Lambda) else f"{ast.unparse(factory)}()"
        return f" = {made}", initialised
    return (f" = {ast.unparse(given['default'])}" if "default" in given else ""), initialised


def _parameters(arguments: ast.arguments) -> list[str]:
    """Return each parameter as it was written, with the markers ``/`` and ``*``."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults += arguments.defaults
    parts = [_parameter(argument, default) for argument, default in zip(positional, defaults, strict=True)]
    if arguments.posonlyargs:
        parts.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg:
        parts.append(f"*{_parameter(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        parts.append("*")
    parts += [
        _parameter(argument, default)
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    if arguments.kwarg:
        parts.append(f"**{_parameter(arguments.kwarg, None)}")
    return parts


def _parameter(one: ast.arg, default: ast.expr | None) -> str:
    kind = f": {ast.unparse(one.annotation)}" if one.annotation else ""
    if default is None:
        return one.arg + kind
    return f"{one.arg}{kind} = {ast.unparse(default)}" if kind else f"{one.arg}={ast.unparse(default)}"


def _function_signature(node: ast.FunctionDef | ast.AsyncFunctionDef, *, drop_first: bool = False) -> str:
    parameters = _parameters(node.args)[1:] if drop_first else _parameters(node.args)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    start = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    return start + _call(node.name, parameters, returns)


def _call(name: str, parameters: list[str], returns: str = "") -> str:
    line = f"{name}({', '.join(parameters)}){returns}"
    if len(line) <= _WIDE:
        return line
    return "\n".join([f"{name}(", *(f"    {parameter}," for parameter in parameters), f"){returns}"])


def _members(node: ast.ClassDef) -> list[str]:
    lines = []
    documented = [(text, doc) for text, doc, _ in _fields(node) if doc]
    lines += [f"- `{text.split(':')[0]}`: {_on_one_line(doc)}" for text, doc in documented]
    if "StrEnum" in map(ast.unparse, node.bases):
        values = [ast.unparse(statement.value) for statement in node.body if isinstance(statement, ast.Assign)]
        lines.append("- values: " + ", ".join(f"`{value.strip(chr(39))}`" for value in values))
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and not statement.name.startswith("_"):
            lines.append(_member(statement))
    return lines


def _member(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    returns = f": {ast.unparse(node.returns)}" if node.returns else ""
    shown = f"{node.name}{returns}" if "property" in decorators else _flat(_function_signature(node, drop_first=True))
    kind = "property " if "property" in decorators else "classmethod " if "classmethod" in decorators else ""
    doc = _on_one_line(ast.get_docstring(node) or "")
    return f"- {kind}`{shown}`" + (f": {doc}" if doc else "")


def _flat(signature: str) -> str:
    return re.sub(r",\n\)", ")", signature).replace("(\n    ", "(").replace("\n    ", " ")


def _on_one_line(doc: str) -> str:
    return " ".join(prose(doc).split())


def prose(doc: str) -> str:
    """Convert a docstring to Markdown."""
    doc = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", doc)
    return doc.replace("``", "`").replace("::\n", ":\n").strip()
