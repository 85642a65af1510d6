"""Reading JUnit reports that nobody vouches for."""

from __future__ import annotations

import pytest

from donewhen.completion import ReportError, SuiteBaseline, SuiteReport, read_junit
from sentences import assert_sentences


def read(*documents: str | bytes) -> SuiteReport:
    return read_junit([document.encode() if isinstance(document, str) else document for document in documents])


def suite(inside: str) -> str:
    return f'<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="s">{inside}</testsuite></testsuites>'


class TestOutcomes:
    def test_each_kind_of_test_case_has_its_outcome(self) -> None:
        report = read(
            suite(
                '<testcase classname="m" name="good"/>'
                '<testcase classname="m" name="bad"><failure message="assert 1 == 2">trace</failure></testcase>'
                '<testcase classname="m" name="broken"><error message="boom"/></testcase>'
                '<testcase classname="m" name="later"><skipped message="not now"/></testcase>'
            )
        )
        assert dict(report.outcomes) == {
            "m::good": "passed",
            "m::bad": "failed",
            "m::broken": "errored",
            "m::later": "skipped",
        }
        assert dict(report.messages) == {"m::bad": "assert 1 == 2", "m::broken": "boom"}
        assert report.executed == 3

    def test_ids_are_given_by_outcome_in_the_order_of_the_report(self) -> None:
        report = read(
            suite(
                '<testcase name="c"><failure/></testcase><testcase name="a"/>'
                '<testcase name="b"><error/></testcase><testcase name="d"><skipped/></testcase>'
            )
        )
        assert report.ids("failed", "errored") == ("c", "b")
        assert report.ids("passed") == ("a",)
        assert report.ids("skipped") == ("d",)
        assert report.ids() == ()

    def test_a_single_suite_may_be_the_root(self) -> None:
        assert dict(read('<testsuite><testcase name="a"/></testsuite>').outcomes) == {"a": "passed"}

    def test_suites_may_nest(self) -> None:
        nested = suite('<testsuite><testsuite><testcase name="deep"/></testsuite></testsuite><testcase name="a"/>')
        assert set(read(nested).outcomes) == {"deep", "a"}

    def test_a_report_without_tests_has_none(self) -> None:
        for empty in ("<testsuites/>", "<testsuite tests='5'/>", suite("")):
            report = read(empty)
            assert dict(report.outcomes) == {}
            assert report.executed == 0

    def test_no_documents_are_an_empty_report(self) -> None:
        assert read().executed == 0

    @pytest.mark.parametrize(
        ("inside", "outcome"),
        [
            ("<failure/><error/>", "errored"),
            ("<error/><failure/>", "errored"),
            ("<skipped/><failure/>", "failed"),
            ("<failure/><skipped/>", "failed"),
            ("<skipped/>", "skipped"),
            ("<system-out>x</system-out>", "passed"),
            ("<properties><property name='failure'/></properties>", "passed"),
        ],
    )
    def test_of_several_outcomes_in_one_case_the_worst_counts(self, inside: str, outcome: str) -> None:
        assert read(suite(f'<testcase name="a">{inside}</testcase>')).outcomes["a"] == outcome

    @pytest.mark.parametrize(
        ("first", "second", "outcome"),
        [
            ("", "<failure/>", "failed"),
            ("<failure/>", "", "failed"),
            ("<error/>", "<failure/>", "errored"),
            ("", "<skipped/>", "skipped"),
            ("<skipped/>", "", "skipped"),
            ("<skipped/>", "<failure/>", "failed"),
            ("", "", "passed"),
        ],
    )
    def test_of_the_same_id_twice_the_worst_counts(self, first: str, second: str, outcome: str) -> None:
        one, two = (suite(f'<testcase name="a">{inside}</testcase>') for inside in (first, second))
        together = suite(f'<testcase name="a">{first}</testcase><testcase name="a">{second}</testcase>')
        for report in (read(together), read(one, two)):
            assert dict(report.outcomes) == {"a": outcome}

    def test_an_outcome_of_one_case_does_not_spill_into_the_next(self) -> None:
        report = read(suite('<testcase name="a"><failure/></testcase><testcase name="b"/>'))
        assert dict(report.outcomes) == {"a": "failed", "b": "passed"}

    def test_only_what_stands_directly_in_a_case_is_its_outcome(self) -> None:
        report = read(suite('<failure/><testcase name="a"><system-out><failure/></system-out></testcase><error/>'))
        assert dict(report.outcomes) == {"a": "passed"}

    @pytest.mark.parametrize(
        "inside",
        [
            '<failure/><testcase name="inner"/>',
            '<testcase name="inner"/><failure/>',
            '<testcase name="inner"/><error/>',
        ],
    )
    def test_a_failed_case_is_not_lost_when_another_case_stands_in_it(self, inside: str) -> None:
        try:
            report = read(suite(f'<testcase name="outer">{inside}</testcase>'))
        except ReportError:
            return
        assert report.outcomes["outer"] in ("failed", "errored")

    def test_the_first_message_of_a_test_is_kept_on_one_short_plain_line(self) -> None:
        report = read(
            suite(
                '<testcase name="a"><failure message="first&#10;line &#x9b;x"/><failure message="second"/></testcase>'
                f'<testcase name="b"><failure message="{"y" * 500}"/></testcase>'
                '<testcase name="c"><failure message=""/></testcase><testcase name="d"><failure/></testcase>'
            )
        )
        assert report.messages["a"] == "first line x"
        assert len(report.messages["b"]) == 200
        assert set(report.messages) == {"a", "b"}

    def test_a_report_can_not_be_changed(self) -> None:
        report = read(suite('<testcase name="a"><failure message="x"/></testcase>'))
        for mapping in (report.outcomes, report.messages):
            with pytest.raises(TypeError):
                mapping["a"] = "passed"  # type: ignore[index]


class TestIds:
    @pytest.mark.parametrize(
        ("attributes", "expected"),
        [
            ('classname="tests.test_a.TestX" name="test_y[1]"', "tests.test_a.TestX::test_y[1]"),
            ('file="spec/a_spec.rb" name="works"', "spec/a_spec.rb::works"),
            ('classname="c" file="f" name="n"', "c::n"),
            ('classname="" file="f" name="n"', "f::n"),
            ('classname="" name="n"', "n"),
            ('name="n"', "n"),
            ('classname="c"', "c::"),
        ],
    )
    def test_an_id_is_made_of_group_and_name(self, attributes: str, expected: str) -> None:
        assert list(read(suite(f"<testcase {attributes}/>")).outcomes) == [expected]

    @pytest.mark.parametrize("attributes", ["", 'name=""', 'classname="" file="" name=""', 'time="1"'])
    def test_a_case_without_a_name_is_refused(self, attributes: str) -> None:
        with pytest.raises(ReportError) as caught:
            read(suite(f"<testcase {attributes}/>"))
        assert_sentences(caught.value)

    def test_long_ids_that_differ_only_at_their_end_are_two_tests(self) -> None:
        long = "p" * 1000
        both = read(suite(f'<testcase name="t[{long}1]"/><testcase name="t[{long}2]"/>'))
        assert both.executed == 2


class TestRefusals:
    def test_half_a_report_is_refused_with_the_place(self) -> None:
        whole = suite('<testcase name="a"/>\n<testcase name="b"/>')
        with pytest.raises(ReportError) as caught:
            read(whole[: len(whole) // 2])
        assert_sentences(caught.value)
        assert str(caught.value).startswith("line 1, column ")

    @pytest.mark.parametrize(
        "document",
        ["", "   ", "not xml", "<testsuites>", "<testsuites></testsuite>", "<testsuites/><testsuites/>", "{}", "\0"],
        ids=repr,
    )
    def test_what_is_not_well_formed_is_refused(self, document: str) -> None:
        with pytest.raises(ReportError) as caught:
            read(document)
        assert_sentences(caught.value)
        assert caught.value.code == "report_unreadable"

    def test_the_place_of_the_fault_counts_from_one(self) -> None:
        with pytest.raises(ReportError) as caught:
            read("<testsuites>\n<x>")
        assert_sentences(caught.value)

    @pytest.mark.parametrize("root", ["html", "testcase", "testsuitesx", "coverage"])
    def test_another_root_element_is_refused(self, root: str) -> None:
        with pytest.raises(ReportError) as caught:
            read(f'<{root} name="a"/>')
        assert_sentences(caught.value)

    def test_every_document_is_checked(self) -> None:
        good = suite('<testcase name="a"/>')
        with pytest.raises(ReportError) as caught:
            read(good, "<html/>")
        assert_sentences(caught.value)

    def test_a_document_type_is_refused(self) -> None:
        with pytest.raises(ReportError) as caught:
            read('<!DOCTYPE testsuites><testsuites><testcase name="a"/></testsuites>')
        assert_sentences(caught.value)

    def test_an_entity_bomb_is_refused_before_it_goes_off(self) -> None:
        lines = ['<!ENTITY a "ha">']
        lines += [
            f'<!ENTITY {name} "{f"&{before};" * 50}">' for before, name in zip("abcdefghi", "bcdefghij", strict=True)
        ]
        bomb = f'<?xml version="1.0"?><!DOCTYPE x [{"".join(lines)}]><testsuites><testcase name="&j;"/></testsuites>'
        with pytest.raises(ReportError) as caught:
            read(bomb)
        assert_sentences(caught.value)

    def test_an_external_entity_is_refused(self) -> None:
        with pytest.raises(ReportError) as caught:
            read(
                '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><testsuites><testcase name="&f;"/></testsuites>'
            )
        assert_sentences(caught.value)

    def test_a_report_beyond_the_size_limit_is_refused_and_one_at_the_limit_is_read(self) -> None:
        document = suite('<testcase name="a"/>').encode()
        limit = 64 * 1024 * 1024
        assert read(document + b" " * (limit - len(document))).executed == 1
        with pytest.raises(ReportError) as caught:
            read(document + b" " * (limit + 1 - len(document)))
        assert str(limit + 1) in str(caught.value)
        assert str(limit) in str(caught.value)
        assert_sentences(caught.value)

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
    def test_other_encodings_are_read(self, encoding: str) -> None:
        text = f'<?xml version="1.0" encoding="{encoding}"?><testsuites><testcase name="é"/></testsuites>'
        assert list(read(text.encode(encoding)).outcomes) == ["é"]


def test_a_baseline_is_what_ran_and_what_was_skipped() -> None:
    report = read(
        suite(
            '<testcase name="a"/><testcase name="b"><failure/></testcase>'
            '<testcase name="c"><skipped/></testcase><testcase name="d"><error/></testcase>'
        )
    )
    assert SuiteBaseline.of(report) == SuiteBaseline(frozenset({"a", "b", "d"}), frozenset({"c"}))
