"""Tickets from other people's tables: which column is what, which value means pass, and what can't be a ticket."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

from donewhen.foundation.canonical import canonical_json
from donewhen.foundation.disk_dict import DiskDict
from donewhen.foundation.plain_text import one_line
from donewhen.judging.ticket import LABELS, Ticket, TicketError, ticket_of
from donewhen.missions.table_sources import FILE_COLUMNS, SkippedRow, SourceRow, TableSource
from donewhen.models.roles import Binary

Role = Literal["label", "text", "group", "cluster"]

_NAMES: dict[Role, tuple[str, ...]] = {
    "label": (
        "label", "gt_label", "verdict", "ground_truth", "judgement", "judgment", "decision", "outcome", "result",
        "passed", "pass", "is_ok", "ok", "accepted", "approved", "status", "grade",
        "标签", "结论", "判定", "判定结果", "是否通过", "审核结果", "结果", "标注",
    ),
    "text": (
        "text", "content", "body", "evidence_text", "transcript", "description", "message", "output", "response",
        "answer", "comment", "report", "summary", "内容", "文本", "正文", "描述", "说明", "证据", "记录",
    ),
    "group": (
        "group_id", "group", "ticket_id", "ticket", "case_id", "id", "key", "uid", "uuid", "number",
        "编号", "工单号", "工单", "单号", "组号",
    ),
    "cluster": ("cluster", "cluster_id", "聚类", "簇"),
}  # fmt: skip
_MEANS: dict[Binary, tuple[str, ...]] = {
    "pass": (
        "pass", "passed", "passes", "ok", "okay", "yes", "y", "true", "t", "1", "good", "accept", "accepted", "approve",
        "approved", "valid", "success", "successful", "succeeded", "correct", "right", "done", "met", "✓", "✔",
        "通过", "合格", "是", "对", "正确", "成功", "达标", "同意",
    ),
    "fail": (
        "fail", "failed", "fails", "nok", "no", "n", "false", "f", "0", "bad", "reject", "rejected", "refused",
        "denied", "invalid", "failure", "unsuccessful", "incorrect", "wrong", "unmet", "✗", "✘", "✕",
        "not ok", "not done", "not met", "not passed", "not accepted", "not approved",
        "不通过", "未通过", "不合格", "否", "错", "错误", "不正确", "失败", "不达标", "不同意", "拒绝",
    ),
}  # fmt: skip
_OWN: dict[Role, str] = {"label": "label", "text": "text", "group": "group_id", "cluster": "cluster"}
"""As tickets call them; whoever does, too, has not been guessed."""
_PIECES = ("evidence", "per_image")
"""Fields of JSON rows that hold pieces of evidence by their names."""
_KEPT = ("label_source", "label_timestamp")
_SAMPLE = 200
_CHINESE = re.compile(r"[\u3400-\u9fff]")


class ColumnChoices(NamedTuple):
    """What the caller says about a source; what they leave open is guessed."""

    label: str | None = None
    texts: tuple[str, ...] = ()
    group: str | None = None
    cluster: str | None = None
    pass_values: tuple[str, ...] = ()
    fail_values: tuple[str, ...] = ()


class ColumnReading(NamedTuple):
    """How a source is read."""

    label: str
    texts: tuple[str, ...]
    """Empty where rows bring their pieces of evidence by name."""
    group: str | None
    """None where tickets are named after their lines."""
    cluster: str | None
    values: Mapping[str, Binary | None]
    """What each value of the label column means, by how it is written; None where nobody knows."""
    unused: tuple[str, ...]
    guessed: frozenset[Role | Literal["values"]]
    mission: str | None
    """The mission that all rows name."""


class ImportPreview(NamedTuple):
    """What would come of a source."""

    counts: Mapping[Binary, int]
    both: int
    """Groups that have both labels."""
    examples: tuple[Ticket, ...]
    left_out: tuple[SkippedRow, ...]
    problems: tuple[TicketError, ...]
    language: str


def read_columns(source: TableSource, wishes: ColumnChoices) -> ColumnReading:
    """Find out how to read a source; TicketError where only a person can tell."""
    where = str(source.path)
    sample = [row for row in islice(source.rows(), _SAMPLE) if isinstance(row, SourceRow)]
    columns = list(dict.fromkeys(name for row in sample for name in row.fields))
    if not columns:
        problem = next((row for row in source.rows() if isinstance(row, TicketError)), None)
        raise problem or TicketError("There is not one ticket in it.", where=where)
    guessed: set[Role | Literal["values"]] = set()

    def chosen(role: Role, wish: str | None, taken: Sequence[str | None] = ()) -> str | None:
        if wish is not None:
            return _column(wish, columns, role, where)
        names = (*_NAMES[role], *FILE_COLUMNS) if role == "group" and source.kind == "folder" else _NAMES[role]
        found = _by_name(names, [column for column in columns if column not in taken])
        if found is not None and found != _OWN[role]:
            guessed.add(role)
        return found

    label = chosen("label", wishes.label, (wishes.group, wishes.cluster, *wishes.texts))
    if label is None:
        label = _by_values(sample, columns)
        guessed.add("label")
    if label is None:
        raise TicketError(
            "No column looks like the label.", where=where, next_step=f"Name it: --label-column, {_listed(columns)}."
        )
    group = chosen("group", wishes.group, (label, wishes.cluster, *wishes.texts))
    cluster = chosen("cluster", wishes.cluster, (label, group, *wishes.texts))
    texts = tuple(_column(text, columns, "text", where) for text in wishes.texts)
    if not texts and not any(isinstance(row.fields.get(one), dict) for row in sample for one in _PIECES):
        rest = [column for column in columns if column not in (label, group, cluster, "mission", *_KEPT)]
        texts = (_text_column(sample, rest, where),)
        if texts != (_OWN["text"],):
            guessed.add("text")
    counts, missions = _full_look(source, label)
    if len(missions) > 1:
        told = _listed(sorted(missions))
        raise TicketError(f"Its rows belong to several missions: {told}.", where=where, next_step="One mission a run.")
    values = verdict_values(counts, wishes.pass_values, wishes.fail_values)
    if not (wishes.pass_values and wishes.fail_values) and any(one != verdict for one, verdict in values.items()):
        guessed.add("values")
    used = {label, group, cluster, *(texts or ("text",)), "mission", *_PIECES, *_KEPT}
    return ColumnReading(
        label,
        texts,
        group,
        cluster,
        values,
        tuple(column for column in columns if column not in used),
        frozenset(guessed),
        next(iter(missions), None),
    )


def verdict_values(
    values: Iterable[str], pass_values: Sequence[str] = (), fail_values: Sequence[str] = ()
) -> dict[str, Binary | None]:
    """What each value means. What the caller says comes first; of two values, one said leaves the other."""
    said: dict[str, Binary] = {_folded(value): "pass" for value in pass_values}
    for one in map(_folded, fail_values):
        if said.get(one) == "pass":
            raise TicketError(f"{one!r} can't mean both.", where="--pass-value and --fail-value")
        said[one] = "fail"
    distinct = [value for value in dict.fromkeys(values) if value.strip()]
    others = {_folded(one) for one in distinct} - said.keys()
    if said and len(others) == 1 and len(set(said.values())) == 1:
        said[others.pop()] = "fail" if "pass" in said.values() else "pass"
    known: dict[str, Binary] = {word: verdict for verdict in LABELS for word in _MEANS[verdict]}
    return {one: (known | said).get(_folded(one)) for one in distinct}


def import_tickets(
    source: TableSource, understood: ColumnReading, mission: str
) -> Iterator[Ticket | SkippedRow | TicketError]:
    """Every row as a ticket, as something left out, or as what is wrong with it."""
    with DiskDict() as seen, DiskDict() as names:
        for row in source.rows():
            if not isinstance(row, SourceRow):
                yield row
                continue
            try:
                ticket = _ticket(row, understood, mission, names)
            except TicketError as error:
                yield error
                continue
            mark = _mark(ticket.evidence)
            first = seen.first(ticket.key, f"{mark} {row.where}")
            if first is None:
                yield ticket
                continue
            same, _, where = first.partition(" ")
            if same == mark:
                yield SkippedRow(row.where, f"it is the same as {where}")
            else:
                yield TicketError(
                    f"The ticket {one_line(ticket.key, 80)} occurs twice, each time with another text.",
                    where=row.where,
                    next_step=f"The first is at {where}. Which column names a ticket? --group-column tells.",
                )


def preview_import(source: TableSource, understood: ColumnReading, mission: str) -> ImportPreview:
    """Look at all of it."""
    counts: Counter[Binary] = Counter({"pass": 0, "fail": 0})
    examples: dict[Binary, list[Ticket]] = {"pass": [], "fail": []}
    both = 0
    left_out: list[SkippedRow] = []
    problems: list[TicketError] = []
    chinese = letters = 0
    with DiskDict() as groups:
        for ticket in import_tickets(source, understood, mission):
            if isinstance(ticket, SkippedRow):
                left_out.append(ticket)
            elif isinstance(ticket, TicketError):
                problems.append(ticket)
            elif ticket.label is not None:
                counts[ticket.label] += 1
                # A group comes a second time only with the other label.
                both += groups.first(ticket.group_id, ticket.label) is not None
                if len(examples[ticket.label]) < 2:
                    examples[ticket.label].append(ticket)
                if sum(counts.values()) <= _SAMPLE:
                    chinese += len(_CHINESE.findall(ticket.text))
                    letters += sum(map(str.isalnum, ticket.text))
    for label in LABELS:
        if not counts[label]:
            message = f"No ticket is labelled {label}; a judge learns from both."
            problems.append(TicketError(message, where=str(source.path)))
    shown = [*examples["pass"][:1], *examples["fail"][:1], *examples["pass"][1:], *examples["fail"][1:]]
    language = "zh" if chinese > letters / 5 else "en"
    return ImportPreview(counts, both, tuple(shown[:3]), tuple(left_out), tuple(problems), language)


def _ticket(row: SourceRow, understood: ColumnReading, mission: str, names: DiskDict) -> Ticket:
    label = _label(row, understood)
    line = f"line-{row.where.rpartition(':')[2]}"
    group = line if understood.group is None else " ".join(_written(row.fields.get(understood.group)).split())
    data: dict[str, Any] = {"group_id": group, "mission": mission, "label": label, **_evidence(row, understood)}
    if understood.cluster is not None and (cluster := _written(row.fields.get(understood.cluster)).strip()):
        data["cluster"] = cluster
    data |= {one: _written(row.fields[one]) for one in _KEPT if one in row.fields}
    ticket = ticket_of(data, row.where, mission)
    try:
        canonical_json([ticket.cluster, dict(ticket.evidence), ticket.label_source, ticket.label_timestamp])
    except UnicodeEncodeError:
        raise TicketError("Its text holds half a character, which no file can keep.", where=row.where) from None
    if understood.group is None:
        # The same text is the same group, so that its labels can't end up on both sides of a split.
        known = names.first(_mark(ticket.evidence), line) or line
        ticket = ticket._replace(group_id=known, cluster=data.get("cluster", known))
    return ticket


def _label(row: SourceRow, understood: ColumnReading) -> Binary:
    written = _written(row.fields.get(understood.label))
    if not written.strip():
        advice = "Rows without one belong into a file of their own, for donewhen judge."
        raise TicketError("It has no label.", where=row.where, next_step=advice)
    label = understood.values.get(written)
    if label is None:
        message = f"{one_line(written, 60)!r} is neither pass nor fail."
        raise TicketError(message, where=row.where, next_step="Say which: --pass-value, --fail-value.")
    return label


def _evidence(row: SourceRow, understood: ColumnReading) -> dict[str, Any]:
    """The fields of a ticket that are its evidence."""
    if not understood.texts:
        return {one: row.fields[one] for one in (*_PIECES, "text") if one in row.fields}
    pieces: dict[str, str] = {}
    for name in understood.texts:
        value = row.fields.get(name)
        if isinstance(value, list | dict):
            raise TicketError(f"{one_line(name, 60)} is not a text.", where=row.where)
        if text := _written(value):
            pieces[name if len(understood.texts) > 1 else "text"] = text
    return {"evidence": pieces}


def _full_look(source: TableSource, label: str) -> tuple[Counter[str], set[str]]:
    values: Counter[str] = Counter()
    missions: set[str] = set()
    for row in source.rows():
        if isinstance(row, SourceRow):
            values[_written(row.fields.get(label))] += 1
            if mission := _written(row.fields.get("mission")).strip():
                missions.add(mission)
    return values, missions


def _column(wish: str, columns: Sequence[str], role: Role, where: str) -> str:
    found = [column for column in columns if column == wish] or [
        column for column in columns if _folded(column) == _folded(wish)
    ]
    if len(found) != 1:
        message = f"There is no column {one_line(wish, 60)!r} for the {role}."
        raise TicketError(message, where=where, next_step=f"There is: {_listed(columns)}.")
    return found[0]


def _by_name(names: Sequence[str], columns: Sequence[str]) -> str | None:
    named = {re.sub(r"[\s_-]+", "_", _folded(column)): column for column in reversed(columns)}
    return next((named[name] for name in names if name in named), None)


def _by_values(sample: Sequence[SourceRow], columns: Sequence[str]) -> str | None:
    """The one column in which all values are words for a verdict, and both verdicts occur."""
    found = []
    for column in columns:
        values = {_written(row.fields.get(column)) for row in sample} - {""}
        if set(verdict_values(values).values()) == set(LABELS):
            found.append(column)
    return found[0] if len(found) == 1 else None


def _text_column(sample: Sequence[SourceRow], columns: Sequence[str], where: str) -> str:
    named = _by_name(_NAMES["text"], columns)
    if named is not None:
        return named
    lengths = {column: sum(len(_written(row.fields.get(column))) for row in sample) for column in columns}
    longest = max(lengths, key=lambda length: lengths[length], default=None)
    if longest is None or not lengths[longest]:
        raise TicketError("No column is left for the text.", where=where, next_step="Name it: --text-column.")
    return longest


def _written(value: object) -> str:
    """A field as people would write it into a table."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).strip().casefold()


def _mark(evidence: Mapping[str, str]) -> str:
    told = repr(sorted(evidence.items())).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(told, digest_size=16).hexdigest()


def _listed(names: Iterable[str]) -> str:
    return one_line(", ".join(map(repr, names)), 300)
