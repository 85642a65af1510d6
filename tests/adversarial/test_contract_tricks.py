"""How what was agreed is talked down, each trick played on a real plan file next to its innocent twin."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval, person_at_terminal
from donewhen.jobs.plan.creating import add_job, create_project

Donewhen = Callable[..., subprocess.CompletedProcess[str]]

CRITERIA = """\
- AC-1: The tests pass
  check: run python3 -m unittest -q
- AC-2: The report is there
  check: file /report.csv rows >= 3
- AC-3: The page is friendly
  check: manual
"""
SETTINGS = """\
[stop]
files = ["README.md"]
commands = ["make test"]
max_stalled = 4

[jobs]
pass_env = ["LANG_OF_TESTS"]
"""
HOOK = {"type": "command", "command": "donewhen hook stop --runtime claude", "timeout": 1800}


class Shop:
    """A project with a sealed contract, and somebody who can edit every file of it."""

    def __init__(self, root: Path, donewhen: Donewhen) -> None:
        self.root = root
        self._donewhen = donewhen
        self.workspace = create_project(root, "Shop")
        (root / "donewhen.toml").write_text(SETTINGS)
        self.hooks({"Stop": [{"hooks": [HOOK]}]})
        upstream = add_job(self.workspace, "Data", criteria=["The data is there"])
        job = add_job(
            self.workspace,
            "Report",
            criteria=["TO BE REPLACED"],
            commands=["python3 -m unittest -q"],
            outputs=["/report.csv", "/main.py"],
            depends_on=[upstream.id],
        )
        self.id, self.plan = job.id, job.path
        self.edit("- AC-1: TO BE REPLACED\n", CRITERIA)
        self.edit("verification_evidence: []", "verification_evidence:\n  - artifacts/verification.md")
        self.seal()

    def seal(self) -> None:
        for proposal in agreement_proposals(
            self.workspace, [self.workspace.job(place.id) for place in self.workspace.places()]
        ):
            agree(self.workspace, proposal, Approval(person_at_terminal()))

    def hooks(self, events: dict[str, Any], name: str = "settings.json", **more: Any) -> None:
        (self.root / ".claude").mkdir(exist_ok=True)
        (self.root / ".claude" / name).write_text(json.dumps({"hooks": events, **more}))

    def edit(self, old: str, new: str) -> None:
        text = self.plan.read_bytes().decode()
        assert old in text, old
        self.plan.write_bytes(text.replace(old, new, 1).encode())

    def ask(self, *arguments: str) -> tuple[int, list[tuple[str, str]]]:
        """What a command finds: its exit status, and each finding's code and message."""
        done = self._donewhen([*arguments, "--json"], self.root)
        return done.returncode, [(one["code"], one["message"]) for one in json.loads(done.stdout)["findings"]]

    def voided(self, *named: str) -> set[str]:
        """The terms that `contract diff` says were loosened or removed; it fails exactly when there are any."""
        status, found = self.ask("contract", "diff", *named)
        assert status == (1 if found else 0), found
        assert {code for code, _ in found} <= {"voided"}, found
        return {message.split(" was ")[0] for _, message in found}


@pytest.fixture
def shop(tmp_path: Path, donewhen: Donewhen) -> Shop:
    return Shop(tmp_path, donewhen)


FIELDS = {
    "outputs emptied": ("outputs:\n  - /report.csv\n  - /main.py", "outputs: []", "outputs"),
    "one output less": ("  - /main.py\n", "", "outputs"),
    "another output": ("  - /main.py", "  - /README.md", "outputs"),
    "outputs nothing": ("outputs:\n  - /report.csv\n  - /main.py", "outputs: ~", "outputs"),
    "outputs left to the default": ("outputs:\n  - /report.csv\n  - /main.py\n", "", "outputs"),
    "evidence emptied": ("verification_evidence:\n  - artifacts/verification.md", "verification_evidence: []",
                         "verification_evidence"),
    "evidence by an empty alias": (
        "outputs:\n  - /report.csv\n  - /main.py\nverification_evidence:\n  - artifacts/verification.md",
        "outputs: &nothing []\nverification_evidence: *nothing", "verification_evidence"),
    "dependency dropped": ("depends_on:\n  - ", "depends_on: []\nformerly:\n  - ", "depends_on"),
    "truth off": ("truth_mode: strict", "truth_mode: off", "truth_mode"),
    "truth off in quotes": ("truth_mode: strict", 'truth_mode: "\\u006fff"', "truth_mode"),
    "check dropped": ("  - freshness\n", "", "truth_checks"),
    "checks emptied by the default": ("truth_checks:\n", "truth_checks: []\ntruth_check:\n", "truth_checks"),
    "target zero": ("reward_target: 80", "reward_target: 0", "reward_target"),
    "target in octal looks": ("reward_target: 80", "reward_target: 79.0", "reward_target"),
    "stakes low": ("stakes: normal", "stakes: low", "stakes"),
    "budget": ("max_iterations: 3", "max_iterations: 99", "max_iterations"),
    "target left to lower stakes": ("stakes: normal\nreward_target: 80\n", "stakes: low\n", "reward_target"),
    "log not required": ("execution_log_required: true", "execution_log_required: false", "execution_log_required"),
    "exemption": ('execution_log_exemption_reason: ""', "execution_log_exemption_reason: trivial",
                  "exemptions.execution_log_exemption_reason"),
    "read only": ("stakes: normal", "read_only: true\nstakes: normal", "read_only"),
    "inputs narrowed": ("stakes: normal", "inputs:\n  - /README.md\nstakes: normal", "inputs"),
    "one test only": ("  - python3 -m unittest -q\n", "  - python3 -m unittest -q -k one_test\n", "commands"),
    "or true": ("  - python3 -m unittest -q\n", '  - "python3 -m unittest -q || true"\n', "commands"),
    "collect only": ("  - python3 -m unittest -q\n", "  - python3 -m unittest --help\n", "commands"),
    "fields pushed out of the frontmatter": ("\noutputs:\n", "\n---\noutputs:\n", "outputs"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "field"), FIELDS.values(), ids=list(FIELDS))
def test_a_field_typed_lower_voids_the_agreement(shop: Shop, old: str, new: str, field: str) -> None:
    shop.edit(old, new)
    assert field in shop.voided(shop.id)


CRITERION_EDITS = {
    "removed": ("- AC-2: The report is there\n  check: file /report.csv rows >= 3\n", ""),
    "a homoglyph": ("The tests pass", "The t\u0435sts pass"),
    "a hidden character": ("The tests pass", "The tests\u200b pass"),
    "a word": ("The tests pass", "The tests mostly pass"),
    "goes on in the next line": ("The tests pass\n", "The tests pass\n  or nearly so\n"),
    "struck out": ("- AC-1: The tests pass", "- ~~AC-1: The tests pass~~"),
    "check removed": ("  check: run python3 -m unittest -q\n", ""),
    "check moved": (CRITERIA, CRITERIA.replace("  check: run python3 -m unittest -q\n", "").replace(
        "  check: file", "  check: run python3 -m unittest -q\n- AC-4: File\n  check: file")),
    "check overridden": (
        "check: run python3 -m unittest -q\n", "check: run python3 -m unittest -q\n  check: manual\n"),
    "check by hand": ("check: run python3 -m unittest -q", "check: manual"),
    "check for one test": ("check: run python3 -m unittest -q", "check: run python3 -m unittest -q -k one_test"),
    "check of another file": ("check: file /report.csv", "check: file /old.csv"),
    "fewer rows": ("rows >= 3", "rows >= 1"),
    "check not indented": ("  check: run python3", "check: run python3"),
    "check as prose": (
        "The tests pass\n  check: run python3 -m unittest -q", "The tests pass [check: run python3 -m unittest -q]"),
    "heading renamed": ("## Acceptance Criteria", "## Acceptance Ideas"),
    "heading in a fence": ("## Acceptance Criteria", "```\n## Acceptance Criteria"),
    "easier section in front": ("## Objective", "## Acceptance Criteria\n\n- AC-1: It compiles\n\n## Objective"),
    "cut by a heading": ("- AC-3: The page", "## Notes\n\n- AC-3: The page"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), CRITERION_EDITS.values(), ids=list(CRITERION_EDITS))
def test_a_criterion_that_was_changed_is_noticed(shop: Shop, old: str, new: str) -> None:
    """Voided, or refused as something that can't be read: never still agreed."""
    shop.edit(old, new)
    status, found = shop.ask("contract", "diff", shop.id)
    assert status in (1, 2)
    assert {code for code, _ in found} <= {"voided", "config"}
    assert shop.ask("why", shop.id)[0] != 0


@pytest.mark.parametrize(
    ("before", "after"),
    [("<!--\n", "-->\n"), ("```\n", "```\n"), ("<details hidden>\n\n", "\n</details>\n")],
    ids=["comment", "fence", "folded away"],
)
def test_criteria_that_are_hidden_from_readers_are_still_asked_for_or_void_the_agreement(
    shop: Shop, before: str, after: str
) -> None:
    shop.edit(CRITERIA, f"{before}{CRITERIA}{after}")
    status, found = shop.ask("why", shop.id)
    assert status == 1
    sentence = " ".join(message for _, message in found)
    assert "voided" in {code for code, _ in found} or all(one in sentence for one in ("AC-1", "AC-2", "AC-3"))


def test_an_easy_criterion_in_a_second_section_takes_nothing_away(shop: Shop) -> None:
    shop.plan.write_text(shop.plan.read_text() + "\n## Acceptance Criteria\n\n- AC-1: It compiles\n  check: run true\n")
    shop.ask("run", shop.id, "--criterion", "AC-1")
    status, found = shop.ask("why", shop.id)
    assert status != 0
    ran = [entry.data["evidence"] for entry in shop.workspace.ledger.read(shop.id).entries if entry.type == "ran"]
    assert {code for code, _ in found} & {"voided", "config"} or ran == ["python3 -m unittest -q"]


def test_a_criterion_that_a_person_decides_is_not_handed_to_a_new_command(tmp_path: Path, donewhen: Donewhen) -> None:
    """Without a check it is a person's; an added command, which asks for more, would decide it in their place."""
    shop = Shop(tmp_path, donewhen)
    job = add_job(shop.workspace, "Page", criteria=["The page looks right"])
    shop.id, shop.plan = job.id, job.path
    shop.seal()
    shop.edit("truth_required_commands: []", 'truth_required_commands:\n  - "true"')
    shop.ask("run", job.id)
    status, found = shop.ask("why", job.id)
    assert status == 1
    assert {code for code, _ in found} & {"voided", "not_shown"}


TWINS = {
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "another order": lambda text: text.replace(CRITERIA, "".join(
        sorted(re.findall(r"- .*\n  .*\n", CRITERIA), reverse=True))),
    "ticked boxes": lambda text: text.replace("- AC-1:", "- [x] AC-1:").replace("- AC-2:", "- [ ] AC-2:"),
    "another bullet": lambda text: text.replace("- AC-", "* AC-"),
    "bold ids": lambda text: text.replace("- AC-1:", "- **AC-1**:"),
    "no ids": lambda text: re.sub(r"- AC-\d: ", "- ", text),
    "other ids": lambda text: text.replace("AC-1", "AC-7"),
    "empty lines": lambda text: text.replace("\n- AC-", "\n\n- AC-"),
    "a wrapped line": lambda text: text.replace("The report is there", "The report\n  is there"),
    "white space": lambda text: text.replace("check: run python3 -m", "check:   run  python3   -m"),
    "a deeper check": lambda text: text.replace("  check:", "      check:"),
    "a heading in small letters": lambda text: text.replace("## Acceptance Criteria", "### acceptance criteria ###"),
    "a progress log": lambda text: text.replace("## Progress Log\n", "## Progress Log\n\n- AC-1: done, I think\n"),
    "another title": lambda text: text.replace("title: Report", "title: The report"),
    "quotes": lambda text: text.replace("truth_mode: strict", "truth_mode: 'strict'"),
    "a list in brackets": lambda text: text.replace(
        "outputs:\n  - /report.csv\n  - /main.py", "outputs: [/main.py, /report.csv]"),
    "an anchor": lambda text: text.replace("truth_mode: strict", "truth_mode: &mode strict").replace(
        "stakes: normal", "stakes: normal\nnote: {mode: [1, 2]}"),
    "a comment": lambda text: text.replace("reward_target: 80", "reward_target: 80 # as agreed"),
    "an unknown key": lambda text: text.replace("stakes: normal", "stakes: normal\nreviewer: Ada"),
    "priority": lambda text: text.replace("priority: 2", "priority: 1"),
    "a higher target": lambda text: text.replace("reward_target: 80", "reward_target: 95"),
    "a smaller budget": lambda text: text.replace("max_iterations: 3", "max_iterations: 2"),
    "one more criterion": lambda text: text.replace(CRITERIA, CRITERIA + "- AC-9: It is quick\n"),
    "one more output": lambda text: text.replace("  - /main.py\n", "  - /main.py\n  - /docs.md\n"),
    "one more command": lambda text: text.replace(
        "  - python3 -m unittest -q\n", "  - python3 -m unittest -q\n  - ls\n"),
}  # fmt: skip


@pytest.mark.parametrize("change", TWINS.values(), ids=list(TWINS))
def test_the_twin_that_says_the_same_or_asks_for_more_stays_agreed(shop: Shop, change: Callable[[str], str]) -> None:
    before = shop.plan.read_bytes().decode()
    after = change(before)
    assert after != before
    shop.plan.write_bytes(after.encode())
    assert shop.voided(shop.id) == set()
    assert shop.ask("audit") == (0, [])


UNREADABLE = {
    "an unknown check": ("  - freshness\n", "  - nothing\n", "field"),
    "a field twice": ("reward_target: 80", "reward_target: 80\nreward_target: 0", "document"),
    "a field twice, in quotes": ("reward_target: 80", 'reward_target: 80\n"reward_target": 0', "document"),
    "a second document": ("reward_target: 80", "...\nreward_target: 0", "document"),
    "a tag": ("reward_target: 80", "reward_target: !!python/object/apply:os.getcwd []", "field"),
    "an id of somebody else": ("work_item_id: WI-", "work_item_id: WI-1", "workspace"),
    "no number": ("reward_target: 80", "reward_target: .nan", "field"),
    "less than nothing": ("reward_target: 80", "reward_target: -1", "field"),
}


@pytest.mark.parametrize(("old", "new", "code"), UNREADABLE.values(), ids=list(UNREADABLE))
def test_what_could_be_read_in_two_ways_is_read_in_none(shop: Shop, old: str, new: str, code: str) -> None:
    shop.edit(old, new)
    for arguments in (("why", shop.id), ("run", shop.id), ("contract", "diff", shop.id)):
        status, found = shop.ask(*arguments)
        assert (status, [one for one, _ in found]) == (2, [code])
    status, found = shop.ask("audit")
    assert status == 1
    assert code in [one for one, _ in found]


def test_a_plan_that_is_a_link_is_not_read(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> None:
    target = tmp_path_factory.mktemp("elsewhere") / "plan.md"
    shutil.move(shop.plan, target)
    shop.plan.symlink_to(target)
    assert [code for code, _ in shop.ask("why", shop.id)[1]] == ["document"]
    assert [code for code, _ in shop.ask("audit")[1]] == ["document"]


def test_a_job_that_is_a_link_a_copy_or_gone_is_noticed(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> None:
    aside = tmp_path_factory.mktemp("elsewhere") / "job"
    shutil.move(shop.plan.parent, aside)
    assert "job_missing" in [code for code, _ in shop.ask("audit")[1]]
    shop.plan.parent.symlink_to(aside)
    assert "job_missing" in [code for code, _ in shop.ask("audit")[1]]
    shop.plan.parent.unlink()
    shutil.copytree(aside, shop.plan.parent)
    shutil.copytree(aside, shop.plan.parent.with_name(f"{shop.id}-easier"))
    assert "duplicate_id" in [code for code, _ in shop.ask("status")[1]]
    assert shop.ask("why", shop.id)[0] == 2


def test_the_twin_that_renames_a_jobs_folder_stays_agreed(shop: Shop) -> None:
    shop.plan.parent.rename(shop.plan.parent.with_name(f"{shop.id}-a-better-name"))
    assert shop.voided(shop.id) == set()
    assert shop.ask("audit") == (0, [])


# The gate's own configuration and hooks: the project's contract.


SETTINGS_EDITS = {
    "a file less": ('files = ["README.md"]', "files = []", "settings.stop.files"),
    "a command less": ('commands = ["make test"]', "", "settings.stop.commands"),
    "or true": ("make test", "make -k test", "settings.stop.commands"),
    "let go sooner": ("max_stalled = 4", "max_stalled = 1", "settings.stop.max_stalled"),
    "more variables": ('["LANG_OF_TESTS"]', '["LANG_OF_TESTS", "PYTHONPATH"]', "settings.jobs.pass_env"),
    "longer commands": ("[jobs]", "[jobs]\ncommand_timeout = 9000", "settings.jobs.command_timeout"),
    "ci may agree": ("[jobs]", "[approval]\nci = true\n\n[jobs]", "settings.approval.ci"),
    "a key may agree": ("[jobs]", '[approval]\nkeys = ["ed25519:AAAA"]\n\n[jobs]', "settings.approval.keys"),
}


@pytest.mark.parametrize(("old", "new", "field"), SETTINGS_EDITS.values(), ids=list(SETTINGS_EDITS))
def test_a_gate_that_was_configured_to_ask_for_less_voids_the_project(
    shop: Shop, old: str, new: str, field: str
) -> None:
    assert old in SETTINGS
    (shop.root / "donewhen.toml").write_text(SETTINGS.replace(old, new))
    assert shop.voided() == {field}
    assert "voided" in [code for code, _ in shop.ask("why", shop.id)[1]]


def test_a_configuration_that_was_deleted_or_put_in_front_voids_the_project(shop: Shop) -> None:
    (shop.root / "donewhen.toml").rename(shop.root / "donewhen.toml.bak")
    assert {"settings.stop.files", "settings.stop.commands"} <= shop.voided()
    (shop.root / "donewhen.toml").write_text("")
    assert {"settings.stop.files", "settings.stop.commands"} <= shop.voided()


def test_the_twin_that_writes_the_settings_in_another_way_or_asks_for_more_stays_agreed(shop: Shop) -> None:
    (shop.root / "donewhen.toml").write_text(SETTINGS.replace("max_stalled = 4", "# patient\nmax_stalled = 9"))
    assert shop.voided() == set()
    (shop.root / "donewhen.toml").unlink()
    moved = SETTINGS.replace("[stop]", "[tool.donewhen.stop]").replace("[jobs]", "[tool.donewhen.jobs]")
    (shop.root / "pyproject.toml").write_text(f'[project]\nname = "shop"\n\n{moved}')
    assert shop.voided() == set()


@pytest.mark.parametrize(
    ("events", "name", "more"),
    [
        ({}, "settings.json", {}),
        ({"Stop": [{"hooks": [{**HOOK, "command": f"true || {HOOK['command']}"}]}]}, "settings.json", {}),
        ({"Stop": [{"hooks": [{**HOOK, "timeout": 1}]}]}, "settings.json", {}),
        ({"Stop": [{"matcher": "never", "hooks": [HOOK]}]}, "settings.json", {}),
        ({}, "settings.local.json", {"disableAllHooks": True}),
    ],
    ids=["removed", "short-circuited", "no time", "never matches", "switched off locally"],
)
def test_a_hook_that_was_taken_out_or_disarmed_voids_the_project(
    shop: Shop, events: dict[str, Any], name: str, more: dict[str, Any]
) -> None:
    shop.hooks(events, name, **more)
    assert shop.voided() & {"hooks", "hooks_switched_off"}


def test_the_twin_that_adds_a_hook_of_its_own_stays_agreed(shop: Shop) -> None:
    shop.hooks({"Stop": [{"hooks": [{"type": "command", "command": "say done"}, HOOK]}]}, permissions={"allow": []})
    shop.hooks({"Stop": [{"hooks": [{"type": "command", "command": "say mine"}]}]}, "settings.local.json")
    assert shop.voided() == set()


SAYS_NOTHING = ["x", "TBD", "TODO: later", "T\u200bBD", "\uff34\uff22\uff24", "...", "<fill in>", "Criterion 1", "n/a"]


@pytest.mark.parametrize("text", SAYS_NOTHING, ids=ascii)
def test_a_criterion_that_says_nothing_is_not_agreed_to(shop: Shop, text: str) -> None:
    add_job(shop.workspace, "Template", criteria=[text])
    status, found = shop.ask("agree")
    assert status == 1
    assert "placeholder" in [code for code, _ in found]


@pytest.mark.parametrize(
    "text",
    ["Todo lists can be shared", "None of the tests fail", "Describe prints a table", "Example files are not shipped"],
)
def test_the_twin_that_only_begins_like_a_template_can_be_agreed_to(shop: Shop, text: str) -> None:
    add_job(shop.workspace, "Honest", criteria=[text])
    assert "placeholder" not in [code for code, _ in shop.ask("agree")[1]]
