"""What a rule may say: two verdicts, no third, no ticket's name and no ticket's words."""

from __future__ import annotations

import pytest
from learning_kit import CHINESE, ENGLISH

from donewhen.judging.language import Language
from donewhen.learning.reflection.wording import (
    contains,
    copied_chain,
    fixed_parts,
    is_brand,
    normalise_rule,
    polarity,
    sample_id,
    wording_objection,
)

THIRD_STATE_CHINESE = [
    *("复核", "需复核", "需要复核", "人工复核", "需人工复核", "证据不足", "待定", "不应直接", "不建议直接", "不得直接"),
    *("不宜直接", "佐证", "需进一步", "需要进一步", "进一步确认", "第三态", "不写不通过", "通过但", "无法判断"),
]
AMBIGUOUS_CHINESE = [
    f"{negation}{verb}" for negation in ("不应", "不建议", "不要", "不得") for verb in ("判定为", "判断为", "判为")
]
THIRD_STATE_ENGLISH = [
    *("needs review", "manual review", "review needed", "inconclusive", "insufficient evidence", "to be determined"),
    *("pending", "cannot determine", "unclear", "pass but", "further confirmation", "should not directly"),
]
TRADITIONAL = str.maketrans("复证据应议进确认态写无断为过", "複證據應議進確認態寫無斷為過")


def reason(text: str, language: Language, max_length: int = 160) -> str | None:
    found = wording_objection(text, language, max_length, ("QC-12", "ab"), ())
    return None if found is None else found.reason


def full_width(text: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)


@pytest.mark.parametrize("phrase", THIRD_STATE_CHINESE)
@pytest.mark.parametrize(
    "written",
    [
        lambda phrase: phrase,
        lambda phrase: phrase.translate(TRADITIONAL),
        lambda phrase: " ".join(phrase),
        lambda phrase: "·".join(phrase),
        lambda phrase: "，".join(phrase),
        lambda phrase: "-".join(phrase.translate(TRADITIONAL)),
    ],
    ids=["plain", "traditional", "spaced", "dotted", "commas", "traditional with hyphens"],
)
def test_a_third_state_is_found_however_it_is_written(phrase: str, written: object) -> None:
    assert callable(written)
    assert reason(f"若{written(phrase)}，则判定不通过", CHINESE) == "third_state"


@pytest.mark.parametrize("phrase", AMBIGUOUS_CHINESE)
def test_saying_what_a_verdict_is_not_is_no_verdict(phrase: str) -> None:
    assert reason(f"标签缺失时{phrase}通过", CHINESE) == "ambiguous_negation"
    assert reason(f"标签缺失时{phrase.translate(TRADITIONAL)}通過", CHINESE) == "ambiguous_negation"
    assert reason(f"标签缺失时{' '.join(phrase)}通过", CHINESE) == "ambiguous_negation"


@pytest.mark.parametrize(
    "text", ["若証據不足，则判定不通过", "若無佐証，則判定不通過", "若須複覈，則判定不通過", "覆核後判定通過"]
)
def test_characters_with_several_traditional_forms_are_one(text: str) -> None:
    assert reason(text, CHINESE) == "third_state"


@pytest.mark.parametrize("phrase", THIRD_STATE_ENGLISH)
def test_an_english_third_state_is_found_whatever_the_width_case_and_separators(phrase: str) -> None:
    variants = [phrase, phrase.upper(), phrase.title(), full_width(phrase)]
    variants += [phrase.replace(" ", separator) for separator in ("-", "_", "  ", "/", " - ", "\u3000")]
    for variant in variants:
        assert reason(f"If it is {variant}, the verdict is fail.", ENGLISH) == "third_state", variant


@pytest.mark.parametrize(
    "text",
    [
        "Depending on the page, the verdict is fail.",
        "When spending is above the limit, the verdict is fail.",
        "When an appending step is missing, the verdict is fail.",
        "A nuclear plant without a fence: fail.",
        "When the bypass button is shown, the verdict is fail.",
        "When a reviewer has signed, the verdict is pass.",
        "If the tests did not pass, the verdict is fail.",
        "If nothing failed and all is signed, then pass.",
        "Passport pages that are missing: fail.",
    ],
)
def test_innocent_words_are_let_through(text: str) -> None:
    assert reason(text, ENGLISH) is None


@pytest.mark.parametrize(
    "text",
    [
        "若标签缺失，则判定不通过",
        "若标签清晰则判定通过",
        "未通过测试的设备，判定不通过",
        "标签完整→通过",
        "若檢測未通過則判定不通過",
    ],
)
def test_innocent_chinese_is_let_through(text: str) -> None:
    assert reason(text, CHINESE) is None


@pytest.mark.parametrize("hidden", ["\u200b", "\u00ad", "\u2060", "\u202e", "\ufeff"])
def test_characters_that_cannot_be_seen_hide_nothing(hidden: str) -> None:
    assert reason(f"If it is pen{hidden}ding, the verdict is fail.", ENGLISH) == "malformed_item"
    assert reason(f"若待{hidden}定，则判定不通过", CHINESE) in ("third_state", "malformed_item")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("When a captcha is shown, the verdict is fail.", "fail"),
        ("Fail whatever shows a captcha.", "fail"),
        ("A receipt passes.", "pass"),
        ("Judged as passed where a receipt is shown.", "pass"),
        ("When tests that must pass are red, the verdict is fail.", "fail"),
        ('When it says "pass", the verdict is fail.', "fail"),
        ("When it says “fail”, then pass.", "pass"),
        ("Look at the captcha.", "none"),
        ("The verdict is pass or fail.", "both"),
        ("PASS where a receipt is shown.", "pass"),
        ("Passwords and failures are compassion.", "none"),
    ],
)
def test_the_verdict_of_a_rule_is_its_conclusion_not_its_condition(text: str, said: str) -> None:
    assert polarity(text, ENGLISH) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("若标签缺失，则判定不通过", "fail"),
        ("若标签清晰，则判定通过", "pass"),
        ("標籤缺失則判定不通過", "fail"),
        ("出现“不通过”字样时判定通过", "pass"),
        ("看标签", "none"),
        ("判定通过或不通过", "both"),
    ],
)
def test_the_longer_chinese_verdict_is_not_taken_for_the_shorter(text: str, said: str) -> None:
    assert polarity(text, CHINESE) == said


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("When a captcha is shown, it must not pass.", ENGLISH),
        ("When a captcha is shown, it does not pass.", ENGLISH),
        ("Never pass what shows a captcha.", ENGLISH),
        ("When a receipt is shown, the verdict is not fail.", ENGLISH),
        ("When a receipt is shown it can't fail.", ENGLISH),
        ("若标签缺失，则判定未通过", CHINESE),
        ("若标签缺失，则不予通过", CHINESE),
        ("若标签缺失，则不能判定为通过", CHINESE),
        ("若標籤缺失，則沒有通過", CHINESE),
    ],
)
def test_a_negated_verdict_is_not_taken_for_the_verdict(text: str, language: Language) -> None:
    assert reason(text, language) == "ambiguous_negation"


def test_a_missions_own_words_are_its_verdicts_too() -> None:
    language = ENGLISH.with_words("sound", "not sound")
    assert polarity("When it leaks, the verdict is not sound.", language) == "fail"
    assert reason("When it leaks, the verdict is not sound.", language) is None
    assert polarity("When it holds, the verdict is sound.", language) == "pass"
    assert polarity("When it holds, the verdict is pass.", language) == "pass"


def test_a_rule_says_one_verdict_and_says_something() -> None:
    assert reason("  ", ENGLISH) == "empty_text"
    assert reason("Look at the captcha.", ENGLISH) == "no_verdict"
    assert reason("The verdict is pass or fail.", ENGLISH) == "both_verdicts"
    assert reason(f"{'x' * 154} fail", ENGLISH) is None
    assert reason(f"{'x' * 155} fail", ENGLISH) is None
    assert reason(f"{'x' * 156} fail", ENGLISH) == "too_long"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("QC-12 shows that a captcha is a fail.", "QC-12"),
        ("As in qc-12, fail.", "QC-12"),
        ("A page like QC-99 is a fail.", "QC-99"),
        ("What ends in :: fail is a fail.", ":: fail"),
        ("A page like QC-123 is a fail.", "QC-123"),
        ("ab and fail.", None),
        ("A fabulous page is a fail.", None),
        ("Whoever concatenates cat is a fail.", "cat"),
        ("Whoever concatenates is a fail.", None),
    ],
)
def test_a_rule_names_no_ticket(text: str, named: str | None) -> None:
    assert sample_id(text, ("QC-12", "ab", "cat")) == named


def test_a_rule_does_not_copy_a_tickets_words() -> None:
    source = "first the red kettle stood on the old stove, then it fell down"
    assert copied_chain("Fail if the RED kettle stood on the old-stove then it goes", (source,)) == (
        "the red kettle stood on the old stove"
    )
    assert copied_chain("Fail if the red kettle stood on an old stove", (source,)) is None
    assert copied_chain("Fail if the kettle fell", ("", source)) is None
    chinese = "机柜左侧第一张照片显示标签完整但是颜色不对"
    assert copied_chain("若左侧第一张照片显示标签完整但则判定不通过", (chinese,)) == "左侧第一张照片显示标签完整但"
    assert copied_chain("若第一张照片显示标签则判定不通过", (chinese,)) is None
    assert reason("If the kettle fell, fail.", ENGLISH) is None
    assert wording_objection("The red kettle stood on the old stove: fail.", ENGLISH, 160, (), (source,)) is not None


@pytest.mark.parametrize(
    "name", ["brand", "Brand", "BRAND_NAME", "brand-identity", "ｂｒａｎｄ", "branding", "a brand"]
)
def test_a_brand_is_one_however_it_is_written(name: str) -> None:
    assert is_brand(name, ENGLISH)
    assert not is_brand(name.lower().replace("brand", "grand").replace("ｂ", "ｇ"), ENGLISH)


def test_a_chinese_brand_is_one_in_both_tongues() -> None:
    assert is_brand("品牌", CHINESE)
    assert is_brand("品 牌 型号", CHINESE)
    assert is_brand("Brand", CHINESE)
    assert not is_brand("global_local", CHINESE)


def test_texts_that_say_the_same_are_the_same_and_numbers_say_something() -> None:
    def alike(first: str, second: str) -> bool:
        return normalise_rule(first, ENGLISH) == normalise_rule(second, ENGLISH)

    assert alike("When  X is shown, the verdict is FAIL.", "when x is shown the verdict is fail")
    assert alike("count<3 is a fail", "Count < 3 is a fail!")
    assert not alike("at least 1.5 m: fail", "at least 15 m: fail")
    assert not alike("count < 3: fail", "count > 3: fail")
    assert not alike("at -5 degrees: fail", "at 5 degrees: fail")
    assert not alike("it is a pass", "it is a fail")
    assert normalise_rule("標籤缺失則判定不通過", CHINESE) == normalise_rule("標籤缺失则判定不通过。", CHINESE)


def test_numbers_and_quotes_set_rules_apart() -> None:
    assert fixed_parts('At least 3 of "red", or 2.5 of “blue”') == ('"red"', "“blue”", "3", "2.5")
    assert fixed_parts("count < 3") != fixed_parts("count > 3")
    assert fixed_parts("count <3") == fixed_parts("count < 3")
    assert fixed_parts("5") != fixed_parts("-5")


def test_a_phrase_is_found_as_words_and_characters_wherever_they_stand() -> None:
    assert contains("It is UNCLEAR.", "unclear", ENGLISH)
    assert not contains("nuclear", "unclear", ENGLISH)
    assert contains("需 要 復核", "复核", CHINESE)
    assert not contains("核复", "复核", CHINESE)
