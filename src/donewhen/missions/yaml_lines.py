"""Find the lines of the keys in a YAML file, for messages about their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import yaml


def yaml_lines(text: str) -> dict[str, int]:
    """The line of each key, by its dotted name. The rows of a list have the name of the list, and the first counts."""
    lines: dict[str, int] = {}
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is not None:
        _collect(root, "", lines)
    return lines


def line_of_key(lines: Mapping[str, int], names: Sequence[str]) -> int:
    """The line of the first name that the file has, or else of the table around it; 1 if it has neither."""
    for name in names:
        if name in lines:
            return lines[name]
    tables = [name.rpartition(".")[0] for name in names if "." in name]
    return line_of_key(lines, tables) if tables else 1


def _collect(node: yaml.Node, name: str, lines: dict[str, int]) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            full = f"{name}.{key.value}" if name else str(key.value)
            lines.setdefault(full, key.start_mark.line + 1)
            _collect(value, full, lines)
    elif isinstance(node, yaml.SequenceNode):
        for row in node.value:
            _collect(row, name, lines)
