"""Import tickets from tables: detect the columns, map values to verdicts and report rows that can't be imported."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.foundation.canonical import canonical_json
from donewhen.foundation.disk_dict import DiskDict
from donewhen.foundation.plain_text import one_line
from donewhen.judging.ticket import LABELS, Ticket, TicketError, ticket_of
from donewhen.missions.table_sources import FILE_COLUMNS, SkippedRow, SourceRow, TableSource

Role = Literal["label", "text", "group", "cluster"]

_COLUMN_NAMES: dict[Role, tuple[str, ...]] = {
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
_VERDICT_WORDS: dict[Binary, tuple[str, ...]] = {
    "pass": (
        "pass", "passed", "passes", "ok", "okay", "yes", "y", "true", "t", "1", "good", "accept", "accepted", "approve",
        "approved", "valid", "success", "successful", "succeeded", "correct", "right", "done", "met", "✓", "✔",
        "通过", "审核通过", "合格", "是", "对", "正确", "成功", "达标", "同意",
    ),
    "fail": (
        "fail", "failed", "fails", "nok", "no", "n", "false", "f", "0", "bad", "reject", "rejected", "refused",
        "denied", "invalid", "failure", "unsuccessful", "incorrect", "wrong", "unmet", "✗", "✘", "✕",
        "not ok", "not done", "not met", "not passed", "not accepted", "not approved",
        "不通过", "未通过", "审核不通过", "不合格", "否", "错", "错误", "不正确", "失败", "不达标", "不同意", "拒绝",
    ),
}  # fmt: skip
_FIELD_NAMES: dict[Role, str] = {"label": "label", "text": "text", "group": "group_id", "cluster": "cluster"}
"""The field names of tickets; a column with such a name does not count as guessed."""
_EVIDENCE_FIELDS = ("evidence", "per_image")
"""Fields of JSON rows that hold named pieces of evidence."""
_EXTRA_FIELDS = ("label_source", "label_timestamp")
_SAMPLE = 200
_CHINESE = re.compile(r"[\u3400-\u9fff]")


class ColumnChoices(NamedTuple):
    """The caller's choices for a source; the rest is guessed."""

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
    """Empty if rows have named pieces of evidence."""
    group: str | None
    """None if tickets are named after their lines."""
    cluster: str | None
    values: Mapping[str, Binary | None]
    """The verdict for each value of the label column; None if unknown."""
    unused: tuple[str, ...]
    guessed: frozenset[Role | Literal["values"]]
    mission: str | None
    """The mission named in the rows."""


class ImportPreview(NamedTuple):
    """What an import of a source would produce."""

    counts: Mapping[Binary, int]
    both: int
    """Groups that have both labels."""
    examples: tuple[Ticket, ...]
    left_out: tuple[SkippedRow, ...]
    problems: tuple[TicketError, ...]
    language: str


def read_columns(source: TableSource, wishes: ColumnChoices) -> ColumnReading:
    """Detect the columns of a source; raise TicketError if the caller has to choose."""
    where = str(source.path)
    sample = [row for row in islice(source.rows(), _SAMPLE) if isinstance(row, SourceRow)]
    columns = list(dict.fromkeys(name for row in sample for name in row.fields))
    if not columns:
        problem = next((row for row in source.rows() if isinstance(row, TicketError)), None)
        raise problem or TicketError("The source has no tickets.", where=where)
    guessed: set[Role | Literal["values"]] = set()

    def choose(role: Role, wish: str | None, taken: Sequence[str | None] = ()) -> str | None:
        if wish is not None:
            return _match_column(wish, columns, role, where)
        names = (
            (*_COLUMN_NAMES[role], *FILE_COLUMNS)
            if role == "group" and source.kind == "folder"
            else _COLUMN_NAMES[role]
        )
        guess = _guess_by_name(names, [column for column in columns if column not in taken])
        if guess is not None and guess != _FIELD_NAMES[role]:
            guessed.add(role)
        return guess

    label = choose("label", wishes.label, (wishes.group, wishes.cluster, *wishes.texts))
    if label is None:
        label = _guess_by_values(sample, columns)
        guessed.add("label")
    if label is None:
        raise TicketError(
            "No label column found.", where=where, next_step=f"Set --label-column to one of {_listed(columns)}."
        )
    group = choose("group", wishes.group, (label, wishes.cluster, *wishes.texts))
    cluster = choose("cluster", wishes.cluster, (label, group, *wishes.texts))
    texts = tuple(_match_column(text, columns, "text", where) for text in wishes.texts)
    if not texts and not any(isinstance(row.fields.get(name), dict) for row in sample for name in _EVIDENCE_FIELDS):
        rest = [column for column in columns if column not in (label, group, cluster, "mission", *_EXTRA_FIELDS)]
        texts = (_text_column(sample, rest, where),)
        if texts != (_FIELD_NAMES["text"],):
            guessed.add("text")
    counts, missions = _count_values(source, label)
    if len(missions) > 1:
        raise TicketError(
            f"The rows belong to several missions: {_listed(sorted(missions))}.",
            where=where,
            next_step="Import one mission at a time.",
        )
    values = verdict_values(counts, wishes.pass_values, wishes.fail_values)
    if not (wishes.pass_values and wishes.fail_values) and any(value != verdict for value, verdict in values.items()):
        guessed.add("values")
    used = {label, group, cluster, *(texts or ("text",)), "mission", *_EVIDENCE_FIELDS, *_EXTRA_FIELDS}
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
    """Map each value to a verdict. The caller's values take precedence; of two values, naming one implies the other."""
    stated: dict[str, Binary] = {_folded(value): "pass" for value in pass_values}
    for fail_value in map(_folded, fail_values):
        if stated.get(fail_value) == "pass":
            raise TicketError(f"{fail_value!r} can't mean both pass and fail.", where="--pass-value and --fail-value")
        stated[fail_value] = "fail"
    distinct = [value for value in dict.fromkeys(values) if value.strip()]
    others = {_folded(value) for value in distinct} - stated.keys()
    if stated and len(others) == 1 and len(set(stated.values())) == 1:
        stated[others.pop()] = "fail" if "pass" in stated.values() else "pass"
    known: dict[str, Binary] = {word: verdict for verdict in LABELS for word in _VERDICT_WORDS[verdict]}
    return {value: (known | stated).get(_folded(value)) for value in distinct}


def import_tickets(
    source: TableSource, columns: ColumnReading, mission: str
) -> Iterator[Ticket | SkippedRow | TicketError]:
    """Yield each row as a ticket, a skipped row or an error."""
    with DiskDict() as seen, DiskDict() as names:
        for row in source.rows():
            if not isinstance(row, SourceRow):
                yield row
                continue
            try:
                ticket = _ticket(row, columns, mission, names)
            except TicketError as error:
                yield error
                continue
            evidence_digest = _evidence_digest(ticket.evidence)
            first = seen.first(ticket.key, f"{evidence_digest} {row.where}")
            if first is None:
                yield ticket
                continue
            same, _, where = first.partition(" ")
            if same == evidence_digest:
                yield SkippedRow(row.where, f"duplicate of {where}")
            else:
                yield TicketError(
                    f"The ticket {one_line(ticket.key, 80)} occurs twice with different texts.",
                    where=row.where,
                    next_step=f"It first occurs at {where}. Set --group-column to the column with the ticket's ID.",
                )


def preview_import(source: TableSource, columns: ColumnReading, mission: str) -> ImportPreview:
    """Run the import without writing, and collect counts, examples and problems."""
    counts: Counter[Binary] = Counter({"pass": 0, "fail": 0})
    examples: dict[Binary, list[Ticket]] = {"pass": [], "fail": []}
    both = 0
    left_out: list[SkippedRow] = []
    problems: list[TicketError] = []
    chinese = letters = 0
    with DiskDict() as groups:
        for ticket in import_tickets(source, columns, mission):
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
            message = f"No ticket is labelled {label}; a judge needs both labels."
            problems.append(TicketError(message, where=str(source.path)))
    mixed = [*examples["pass"][:1], *examples["fail"][:1], *examples["pass"][1:], *examples["fail"][1:]]
    language = "zh" if chinese > letters / 5 else "en"
    return ImportPreview(counts, both, tuple(mixed[:3]), tuple(left_out), tuple(problems), language)


def _ticket(row: SourceRow, columns: ColumnReading, mission: str, names: DiskDict) -> Ticket:
    label = _label(row, columns)
    line = f"line-{row.where.rpartition(':')[2]}"
    group = line if columns.group is None else " ".join(_as_text(row.fields.get(columns.group)).split())
    data: dict[str, Any] = {"group_id": group, "mission": mission, "label": label, **_evidence(row, columns)}
    if columns.cluster is not None and (cluster := _as_text(row.fields.get(columns.cluster)).strip()):
        data["cluster"] = cluster
    data |= {name: _as_text(row.fields[name]) for name in _EXTRA_FIELDS if name in row.fields}
    ticket = ticket_of(data, row.where, mission)
    try:
        canonical_json([ticket.cluster, dict(ticket.evidence), ticket.label_source, ticket.label_timestamp])
    except UnicodeEncodeError:
        message = "The text contains an unpaired surrogate, which can't be encoded as UTF-8."
        raise TicketError(message, where=row.where) from None
    if columns.group is None:
        # Equal texts form one group, so that their labels can't end up in different splits.
        known = names.first(_evidence_digest(ticket.evidence), line) or line
        ticket = ticket._replace(group_id=known, cluster=data.get("cluster", known))
    return ticket


def _label(row: SourceRow, columns: ColumnReading) -> Binary:
    written = _as_text(row.fields.get(columns.label))
    if not written.strip():
        advice = "Put rows without a label into a separate file, for donewhen judge."
        raise TicketError("The row has no label.", where=row.where, next_step=advice)
    label = columns.values.get(written)
    if label is None:
        message = f"{one_line(written, 60)!r} is neither pass nor fail."
        raise TicketError(message, where=row.where, next_step="Map it with --pass-value or --fail-value.")
    return label


def _evidence(row: SourceRow, columns: ColumnReading) -> dict[str, Any]:
    """The fields of a ticket that are its evidence."""
    if not columns.texts:
        return {name: row.fields[name] for name in (*_EVIDENCE_FIELDS, "text") if name in row.fields}
    pieces: dict[str, str] = {}
    for name in columns.texts:
        value = row.fields.get(name)
        if isinstance(value, list | dict):
            raise TicketError(f"{one_line(name, 60)} is not a string.", where=row.where)
        if text := _as_text(value):
            pieces[name if len(columns.texts) > 1 else "text"] = text
    return {"evidence": pieces}


def _count_values(source: TableSource, label: str) -> tuple[Counter[str], set[str]]:
    values: Counter[str] = Counter()
    missions: set[str] = set()
    for row in source.rows():
        if isinstance(row, SourceRow):
            values[_as_text(row.fields.get(label))] += 1
            if mission := _as_text(row.fields.get("mission")).strip():
                missions.add(mission)
    return values, missions


def _match_column(wish: str, columns: Sequence[str], role: Role, where: str) -> str:
    matches = [column for column in columns if column == wish] or [
        column for column in columns if _folded(column) == _folded(wish)
    ]
    if len(matches) != 1:
        message = f"There is no column {one_line(wish, 60)!r} for the {role}."
        raise TicketError(message, where=where, next_step=f"Columns: {_listed(columns)}.")
    return matches[0]


def _guess_by_name(names: Sequence[str], columns: Sequence[str]) -> str | None:
    named = {re.sub(r"[\s_-]+", "_", _folded(column)): column for column in reversed(columns)}
    return next((named[name] for name in names if name in named), None)


def _guess_by_values(sample: Sequence[SourceRow], columns: Sequence[str]) -> str | None:
    """The only column whose values are all words for a verdict, with both verdicts; None if there isn't exactly one."""
    matches = []
    for column in columns:
        values = {_as_text(row.fields.get(column)) for row in sample} - {""}
        if set(verdict_values(values).values()) == set(LABELS):
            matches.append(column)
    return matches[0] if len(matches) == 1 else None


def _text_column(sample: Sequence[SourceRow], columns: Sequence[str], where: str) -> str:
    named = _guess_by_name(_COLUMN_NAMES["text"], columns)
    if named is not None:
        return named
    lengths = {column: sum(len(_as_text(row.fields.get(column))) for row in sample) for column in columns}
    longest = max(lengths, key=lambda column: lengths[column], default=None)
    if longest is None or not lengths[longest]:
        raise TicketError("No text column found.", where=where, next_step="Set --text-column.")
    return longest


def _as_text(value: object) -> str:
    """A field's value as it would be written in a table."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).strip().casefold()


def _evidence_digest(evidence: Mapping[str, str]) -> str:
    content = repr(sorted(evidence.items())).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _listed(names: Iterable[str]) -> str:
    return one_line(", ".join(map(repr, names)), 300)
