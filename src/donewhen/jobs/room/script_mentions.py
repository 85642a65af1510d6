"""Files that judge because scripts of checks import, run or include them, and the data with which they compare.

A script also mentions what it looks at, which is work. So a mention counts only in a folder of tools, or below the
folder of the script, and never in a folder of product code.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from donewhen.jobs.room.judging_names import NamedFile

_TOOLS = re.compile(
    r"(?i)(?:build|dev|test|repo|\W)*[-_]?(?:tool(?:s|ing|box)?|scripts?|ci|checks?|checkers?|dev|devtools|hack|qa|quality"
    r"|gates?|harness|acceptance|lint(?:s|ers?|ing)?|verif\w*|validat\w*|conformance)"
)
_PRODUCT = re.compile(r"(?i)(?:src|lib|libs|app|apps|pkg|internal|cmd|include|components|pages|public|python)")
_EXPECTED = re.compile(
    r"(?i)expect|golden|snapshot|baseline|reference|fixture|approved|oracle|answer|solution|truth|limit|threshold|budget"
    r"|allow|deny|ignore|exclu|skip|rule|polic|schema|contract|criteri|(?:^|[/_-])cases?(?:[/._-]|\Z)|tolera|known"
    r"|checksum|sha256|quota|require"
)
_RECIPES = re.compile(r"(?i)(?:gnu|bsd)?makefile|.*\.(?:mk|mak|make|just)|\.?justfile")
_SHELL = re.compile(r"(?i).*\.(?:sh|bash|zsh|ksh)|[^.]+")
_SCRIPTS = re.compile(
    r"(?i).*\.(?:py|[cm]?[jt]s|rb|pl|php|lua|sh|bash|zsh|ksh|mk|mak|make|just|ya?ml)|\.?[^.]+"
    r"|tox\.ini|p(?:yproject|ixi)\.toml|(?:package|composer|deno)\.jsonc?"
)
_CODE = re.compile(r"(?i).*\.(?:py|pyi|[cm]?[jt]sx?|rb|pl|pm|php|lua|sh|bash|zsh|ksh|awk|jq|sql|sed)|[^.]+")
_WORD = re.compile(r"[\w@+.-]+(?:/[\w@+.-]+)*")
_JOINED = re.compile(r"""(?:['"][\w@+./-]+['"]\s*[,/]\s*)+['"][\w@+./-]+['"]""")
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+\(?([\w, \t]*)|import[ \t]+([\w., \t]+))", re.MULTILINE
)
_INCLUDED = re.compile(r"^[ \t]*(?:-|s)?include[ \t]+(.+)$|^[ \t]*import\??[ \t]+(['\"].+['\"])[ \t]*$", re.MULTILINE)
_SOURCED = re.compile(r"(?:^|[;&|{(]|\b(?:then|else|do)\b)[ \t]*(?:\.|source)[ \t]+([^\s;&|)]+)", re.MULTILINE)
_VARIABLE = re.compile(r"\$(?:\([^()]*\)|\{[^{}]*\}|\w+)/?")
_ENDINGS = ("", ".py", "/__init__.py", ".js", ".cjs", ".mjs", ".ts", "/index.js", "/index.ts", ".rb", ".lua", ".sh")
_MAX_BYTES, _MAX_FOUND, _DEEPEST = 1 << 18, 500, 4


def mentioned_by_scripts(
    named: Iterable[Sequence[NamedFile]], inside: str, agreed: Collection[str], read: Callable[[str], bytes | None]
) -> tuple[NamedFile, ...]:
    """The scripts among the files that checks name, those that these run or load in turn, and what they include."""
    names = (os.path.normpath(f"{inside}{file.name}") for files in named for file in files if not file.loaded)
    level = [*dict.fromkeys(name for name in names if name in agreed and _is_script(name, inside, agreed))]
    seen = dict.fromkeys(level)
    included: dict[NamedFile, None] = {}
    for _ in range(_DEEPEST):
        later: dict[str, None] = {}
        for script in level:
            text = (read(script) or b"")[:_MAX_BYTES].decode("utf-8", "replace")
            included |= dict.fromkeys(_included(script, text, inside))
            later |= dict.fromkeys(
                name
                for name in _mentioned(script, text, inside, agreed)
                if name not in seen and _is_code(name) and _judges(name, script, inside, agreed)
            )
        seen |= later
        level = [*later]
        if not level or len(seen) > _MAX_FOUND:
            break
    scripts = (NamedFile(_in_project(name, inside), whole_folder=False, script=True) for name in seen)
    return (*scripts, *included)


def may_be_compared(name: str, inside: str, agreed: Collection[str]) -> bool:
    """Whether data that scripts of checks name, and no product, is what they compare the work with.

    What lies beside the product's code would be used by the product. Elsewhere only its name says so, because data is
    often the work.
    """
    return _EXPECTED.search(name) is not None or _is_product(name, inside, agreed)


def _is_code(name: str) -> bool:
    return _CODE.fullmatch(PurePosixPath(name).name) is not None


def _is_script(name: str, inside: str, agreed: Collection[str]) -> bool:
    return _SCRIPTS.fullmatch(PurePosixPath(name).name) is not None and not _is_product(name, inside, agreed)


def _judges(name: str, script: str, inside: str, agreed: Collection[str]) -> bool:
    """Whether a file that a script mentions judges with it, and is not what the script looks at."""
    if _is_tool(name, inside):
        return True
    folder = script.rpartition("/")[0]
    return (
        folder not in ("", inside.rstrip("/"))
        and name.startswith(f"{folder}/")
        and not _is_product(name, inside, agreed)
    )


def _is_tool(name: str, inside: str) -> bool:
    """Whether a file lies in a folder of tools, and not one that is a part of the product."""
    for folder in name.removeprefix(inside).split("/")[:-1]:
        if _PRODUCT.fullmatch(folder):
            return False
        if _TOOLS.fullmatch(folder):
            return True
    return False


def _is_product(name: str, inside: str, agreed: Collection[str]) -> bool:
    if _is_tool(name, inside):
        return False
    folders = name.removeprefix(inside).split("/")[:-1]
    return any(
        _PRODUCT.fullmatch(folder) is not None or f"{inside}{'/'.join(folders[: depth + 1])}/__init__.py" in agreed
        for depth, folder in enumerate(folders)
    )


def _mentioned(script: str, text: str, inside: str, agreed: Collection[str]) -> Iterator[str]:
    """The agreed files whose paths or modules a script has in it."""
    starts = tuple(dict.fromkeys((f"{script.rpartition('/')[0]}/".lstrip("/"), inside, "")))
    paths = dict.fromkeys(word for word in _WORD.findall(text) if "/" in word or "." in word)
    for joined in _JOINED.findall(text):
        paths["/".join(re.findall(r"[\w@+./-]*[\w@+-]", joined))] = None
    for path in paths:
        for start in starts:
            plain = os.path.normpath(f"{start}{path}")
            yield from (name for ending in _ENDINGS if (name := f"{plain}{ending}") in agreed)
    if script.endswith(".py"):
        for module in _modules(text):
            beside = f"{starts[0]}{'../' * (len(module) - len(module.lstrip('.')) - 1)}"
            path = module.lstrip(".").replace(".", "/")
            for start in (beside,) if module.startswith(".") else starts:
                plain = os.path.normpath(f"{start}{path}")
                yield from (name for ending in (".py", "/__init__.py") if (name := f"{plain}{ending}") in agreed)


def _modules(text: str) -> Iterator[str]:
    """The modules that Python imports, also those that may be names in a module."""
    for source, names, plain in _IMPORT.findall(text):
        if source:
            yield from _with_parents(source)
            dot = "" if source.endswith(".") else "."
            yield from (f"{source}{dot}{words[0]}" for name in names.split(",") if (words := name.split()))
        for name in plain.split(","):
            yield from _with_parents(name.split()[0]) if name.split() else ()


def _with_parents(module: str) -> Iterator[str]:
    """A module and the packages that are imported before it."""
    while module.strip("."):
        yield module
        module = module.rpartition(".")[0]


def _included(script: str, text: str, inside: str) -> Iterator[NamedFile]:
    """What becomes a part of a recipe or a script, perhaps only if it is there."""
    last = PurePosixPath(script).name
    found: list[str] = []
    if _RECIPES.fullmatch(last):
        found += [word for pair in _INCLUDED.findall(text) for part in pair for word in part.partition("#")[0].split()]
    elif _SHELL.fullmatch(last):
        found += _SOURCED.findall(text)
    folder = script.rpartition("/")[0]
    for word in found:
        path = _VARIABLE.sub("", word).strip("'\"")
        if not path or path.startswith(("/", "~")):
            continue
        for start in dict.fromkeys((inside, f"{folder}/" if folder else "")):
            name = os.path.normpath(f"{start}{path}")
            if not name.startswith(".."):
                yield NamedFile(_in_project(name, inside), whole_folder=False, if_there=True)


def _in_project(name: str, inside: str) -> str:
    return os.path.relpath(name, inside or ".") if inside else name
