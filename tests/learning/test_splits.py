"""How tickets are divided: by cluster, both labels alike, the same for a seed."""

from __future__ import annotations

from pathlib import Path

import pytest
from learning_kit import MIN_TRIAL, captcha_model, learn, mission_in, row, small

from donewhen.judging.mission_settings import Split
from donewhen.learning.measuring.splits import PARTS, SplitMember, split_tickets
from donewhen.learning.measuring.ticket_reader import TicketReader
from donewhen.learning.running.events import RunError
from donewhen.learning.running.run_folders import prepare_run
from sentences import assert_sentences


def member(group: str, label: str = "pass", cluster: str | None = None) -> SplitMember:
    return SplitMember(f"{group}::{label}", group, cluster or group, "pass" if label == "pass" else "fail")


def many(passes: int, fails: int) -> list[SplitMember]:
    return [member(f"p{at}") for at in range(passes)] + [member(f"f{at}", "fail") for at in range(fails)]


def test_each_part_has_its_share_of_both_labels() -> None:
    splits = split_tickets(many(100, 50), Split(), 1)
    counts = [(sum(key.endswith("::pass") for key in part), len(part)) for part in splits]
    assert counts == [(60, 90), (20, 30), (20, 30)]


def test_every_ticket_is_in_one_part() -> None:
    members = many(31, 17)
    splits = split_tickets(members, Split(), 5)
    everybody = [*splits.train, *splits.validation, *splits.test]
    assert sorted(everybody) == sorted(member.key for member in members)


def test_a_seed_gives_the_same_parts_whatever_the_order_and_another_seed_gives_others() -> None:
    members = many(30, 30)
    splits = split_tickets(members, Split(), 3)
    assert split_tickets(list(reversed(members)), Split(), 3) == splits
    other = split_tickets(members, Split(), 4)
    assert other != splits
    assert other.hashes != splits.hashes


def test_the_two_labels_of_a_group_never_straddle() -> None:
    members = [member(f"g{at}", label) for at in range(40) for label in ("pass", "fail")]
    for seed in range(5):
        for part in split_tickets(members, Split(), seed):
            groups = [key.rpartition("::")[0] for key in part]
            assert all(groups.count(group) == 2 for group in groups)


def test_a_cluster_never_straddles_even_where_groups_join_clusters() -> None:
    members = [member(f"g{at}", cluster=f"c{at // 4}") for at in range(40)]
    # One group in two clusters makes one of the two.
    members += [member("g0", "fail", cluster="c5")]
    for seed in range(5):
        splits = split_tickets(members, Split(), seed)
        part_of = {key: part for part in PARTS for key in getattr(splits, part)}
        for cluster in {member.cluster for member in members}:
            assert len({part_of[member.key] for member in members if member.cluster == cluster}) == 1
        joined = {part_of[member.key] for member in members if member.cluster in ("c0", "c5")}
        assert len(joined) == 1


def test_a_large_cluster_does_not_starve_the_other_parts() -> None:
    members = [member(f"g{at}", cluster="big") for at in range(50)] + many(50, 50)
    splits = split_tickets(members, Split(), 1)
    assert all(len(part) >= 25 for part in splits)


@pytest.mark.parametrize("share", ["train", "validation", "test"])
def test_a_part_without_a_share_has_nobody(share: str) -> None:
    others = [part for part in PARTS if part != share]
    split = Split(**{share: 0.0, others[0]: 0.5, others[1]: 0.5})
    splits = split_tickets(many(10, 10), split, 1)
    assert [len(getattr(splits, other)) for other in (share, *others)] == [0, 10, 10]


def test_one_ticket_is_learned_from() -> None:
    assert split_tickets([member("a")], Split(), 9) == (("a::pass",), (), ())


def test_hashes_name_what_is_in_a_part_whatever_its_order() -> None:
    splits = split_tickets(many(9, 9), Split(), 1)
    turned = splits._replace(train=tuple(reversed(splits.train)))
    assert turned.hashes == splits.hashes
    assert len(set(splits.hashes.values())) == 3
    assert splits._replace(train=splits.train[1:]).hashes["train"] != splits.hashes["train"]


def test_the_run_records_what_was_in_each_part(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, small(12, 12), "seed = 5\nepochs = 1\n")
    run = learn(mission, captcha_model())
    book = TicketReader(mission)
    splits = split_tickets(book.members, mission.settings.split, 5)
    manifest = run.of("run_started")[0]
    assert manifest["splits"] == {
        "sizes": {"train": len(splits.train), "validation": len(splits.validation), "test": len(splits.test)},
        "hashes": splits.hashes,
    }
    assert manifest["tickets"] == {"count": 24, "hash": book.hash}


def test_without_tickets_to_learn_from_there_is_no_run(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, small(), "[split]\ntrain = 0.0\nvalidation = 0.5\ntest = 0.5\n")
    with pytest.raises(RunError) as caught:
        prepare_run(mission, captcha_model())
    assert_sentences(caught.value)


def test_validation_and_test_tickets_are_never_shown_to_reflection(tmp_path: Path) -> None:
    mission = mission_in(
        tmp_path, [*small(20, 20), row("x1", "fail", "page x1 shows captcha", cluster="captcha3")], MIN_TRIAL
    )
    model = captcha_model()
    run = learn(mission, model)
    splits = split_tickets(TicketReader(mission).members, mission.settings.split, mission.settings.seed)
    shown = {case.ticket_key for request in (*model.decisions, *model.proposals) for case in request.cases}
    assert shown
    assert shown <= set(splits.train)
    assert run.state.guidance.metadata["G1"].sources
    assert set(run.state.guidance.metadata["G1"].sources) <= set(splits.train)
