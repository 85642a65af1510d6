"""The judge-learning specification to the letter: one test for each sentence that is easy to meet in name only."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "learning"))

from learning_kit import (
    CHINESE,
    ENGLISH,
    ONE_VOTE,
    RULES,
    TRIAL_OFF,
    add,
    answer,
    case,
    cases_in,
    guess,
    guidance_of,
    learn,
    mentions,
    mission_in,
    obedient,
    read,
    small,
    terms_of,
)

from donewhen.cli._unread_rules import unread_findings
from donewhen.judging.guidance import apply_change
from donewhen.judging.judge import Judge
from donewhen.judging.language import Language, find_language, shipped_languages
from donewhen.judging.mission import read_mission
from donewhen.judging.ticket import Ticket
from donewhen.judging.verdict import Verdict
from donewhen.learning.after.learn_mission import learn as learn_mission
from donewhen.learning.reflection.hypotheses import add_support
from donewhen.learning.reflection.proposals import HypothesisProposal, OpsPass
from donewhen.learning.reflection.ticket_ids import ticket_number
from donewhen.learning.reflection.word_borders import CJK
from donewhen.learning.reflection.wording import contains, is_brand, polarity, sample_id, wording_objection
from donewhen.learning.running.pool_store import save_waiting_hypotheses, waiting_pool
from donewhen.models.contrast import Contrast
from donewhen.models.contrast.rules import DefaultRule
from donewhen.models.contrast.sentences import read_rule
from donewhen.models.contrast.wording import is_unfit_phrase
from donewhen.models.roles import ReflectionRequest, unread_rules
from donewhen.testing.models import ScriptedJudge
from donewhen_kit import examples

Run = Callable[..., subprocess.CompletedProcess[str]]

SHOWN = "QC-27::fail"
CHAIN = "BBU设备/华为,显示完整,机柜空间充足×1"
ALL_TO_LEARN = "[split]\ntrain = 1.0\nvalidation = 0.0\ntest = 0.0\n"
BARE = f"epochs = 1\n{TRIAL_OFF}{ALL_TO_LEARN}"


def reason(text: str, language: Language, texts: tuple[str, ...] = ()) -> str | None:
    objection = wording_objection(text, language, 160, ("QC-27",), texts)
    return None if objection is None else objection.reason


def proposed(hypothesis: dict[str, Any], language: Language = CHINESE, text: str = CHAIN) -> OpsPass:
    return read(answer(hypotheses=[hypothesis]), terms_of([case(SHOWN, text)], language=language))


def rejected(hypothesis: dict[str, Any], language: Language = CHINESE, text: str = CHAIN) -> list[str]:
    return [rejection.reason for rejection in proposed(hypothesis, language, text).rejections]


# No sample identifiers, in every script


@pytest.mark.parametrize(
    "text",
    [
        "凡与QC-27::fail相同的工单，则判定不通过。",
        "凡与QC-27相同的工单，则判定不通过。",
        "凡与ＱＣ－２７相同的工单，则判定不通过。",
        "凡与qc_27相同的工单，则判定不通过。",
        "凡与QC 27相同的工单，则判定不通过。",
        "凡与QC–27相同的工单，则判定不通过。",
        "凡与QC27相同的工单，则判定不通过。",
        "凡与工单ZZ-9相同的，则判定不通过。",
        "凡以::不通过结尾的工单，则判定不通过。",
    ],
)
def test_a_ticket_is_found_between_chinese_characters(text: str) -> None:
    assert reason(text, CHINESE) == "sample_id"


SCRIPTS = {
    "Han": "凡与相同的工单号",
    "Hiragana": "のようなものから",
    "Katakana": "チケットノヨウナ",
    "Hangul": "티켓과같은경우에",
    "Cyrillic": "заявкиповторить",
    "Greek": "αίτησηόπως",
    "Thai": "เหมือนกับใบงาน",
    "Arabic": "مثلتذكرة",
    "Hebrew": "כמוכרטיס",
    "Devanagari": "जैसाटिकट",
    "Ethiopic": "እንደትኬት",
}
BORDERS = st.sampled_from(["", " ", "，", "。", "“", "(", "：", "\u3000", "「", "/", "、", "_", "-"])
AROUND = st.sampled_from(sorted(SCRIPTS)).flatmap(lambda name: st.text(SCRIPTS[name], max_size=6))
IDS = st.sampled_from(["QC-27", "captcha1", "ticket_0042", "A12-B7", "Run.2024.08", "工单27号", "Заявка-15", "티켓-88"])


@settings(max_examples=examples(300), deadline=None)
@given(IDS, AROUND, AROUND, BORDERS, BORDERS, st.booleans())
@example("QC-27", "凡与", "相同的工单", "", "", False)
@example("captcha1", "сравни", "по", "", "", True)
@example("티켓-88", "", "같", "", "", False)
def test_an_identifier_is_found_whatever_script_stands_around_it(
    group: str, before: str, after: str, left: str, right: str, label: bool
) -> None:
    same_script = {"Заявка-15": "Cyrillic"}.get(group)
    if same_script and set(before + after) & set(SCRIPTS[same_script]):
        left, right = left or " ", right or " "
    written = f"{group}::fail" if label else group
    assert sample_id(f"{before}{left}{written}{right}{after}", (group,)) is not None


@settings(max_examples=examples(200), deadline=None)
@given(
    st.sampled_from(["captcha1", "run7x", "torn"]),
    st.text("abcdefgxyz0123456789", max_size=4),
    st.text("abcdefgxyz0123456789", max_size=4),
    AROUND,
)
def test_an_identifier_inside_a_longer_word_is_no_hit(group: str, before: str, after: str, around: str) -> None:
    longer = f"{before}{group}{after}"
    found = sample_id(f"{around} {longer} {around}", (group,))
    same_shape = group == "captcha1" and not before and after.isdigit()
    assert (found is None) == (bool(before or after) and not same_shape)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("若文件不是UTF-8编码，则判定不通过", CHINESE),
        ("若不符合GB-50311或ISO-9001标准，则判定不通过", CHINESE),
        ("With SHA-256 sums that differ, the verdict is fail.", ENGLISH),
        ("When QC-277 pages are printed twice the verdict is fail.".replace("QC-277", "many"), ENGLISH),
    ],
)
def test_the_name_of_a_standard_is_no_ticket(text: str, language: Language) -> None:
    assert reason(text, language) is None


STANDARDS = [
    *("RJ-45", "CAT-6", "UTF-8", "GB-50174", "RS-485", "CVE-2024-1234", "SHA-256", "PEP-8", "COVID-19", "W-2"),
    *("YD-5201", "WCAG-2", "RTX-4090", "NVME-4", "ASTM-36"),
]


@pytest.mark.parametrize("name", STANDARDS)
def test_a_name_that_no_ticket_has_is_no_ticket(name: str) -> None:
    """It is one if tickets are called like this, or if it is said to be one."""
    assert reason(f"若依据{name}规范施工，则判定通过", CHINESE) is None
    assert reason(f"When {name} is named, the verdict is pass.", ENGLISH) is None
    prefix = name.partition("-")[0]
    assert sample_id(f"依据{name}规范", (f"{prefix}-1",)) is not None
    for text, language in ((f"凡与工单{name}相同的，判定通过", CHINESE), (f"Like ticket {name}: pass.", ENGLISH)):
        assert reason(text, language) == "sample_id"


@pytest.mark.parametrize("groups", [(), ("AB-1", "CD-2", "EF-3")], ids=["unknown", "many prefixes"])
def test_if_the_ids_have_no_common_prefix_everything_of_their_shape_is_one(groups: tuple[str, ...]) -> None:
    assert sample_id("as in ZZ-9", groups) == "ZZ-9"
    assert sample_id("as in UTF-8 or WCAG-2 or RTX-4090", groups) is None
    assert sample_id("as in ZZ-9", ("AB-1", "AB-2", "AB-3")) is None


@pytest.mark.parametrize(
    "written",
    [
        *("QС-27", "Q.C.27", "Q.C.-27", "q c 2 7", "Q C - 2 7", "QC-٢٧", "QC-२७", "QC−27", "QC-027"),
        *("QC 28", "QC#28", "qc28", "QC.28", "QC：28", "QC-2800", "QС 28"),
        *(
            "第28号工单",
            "第２８号工单",
            "第二十八号工单",
            "工单28号",
            "工单编号为28",
            "28號工單",
            "第28条工单",
            "第28个样本",
            "组号为28",
            "group_id为28",
            "QCー28",
            "ticket 28",
            "Ticket #28",
            "ticket no. 28",
        ),
    ],
)
def test_a_ticket_is_found_in_other_spellings_and_by_its_number(written: str) -> None:
    assert reason(f"凡与{written}相同的，则判定不通过", CHINESE) == "sample_id"
    assert reason(f"What is like {written} is a fail.", ENGLISH) == "sample_id"


@pytest.mark.parametrize(
    ("group", "text"),
    [
        ("IN-5", "decided within 5 minutes, in 7 minutes"),
        ("a12", "take a 1-2 minute break"),
        ("a4", "print on A5"),
        ("工单-27", "工单2张照片"),
        ("captcha1", "captcha: 2 times"),
        ("torn", "to RN and t orn"),
        ("2024", "2025 and 20 24"),
        ("QC-27", "QC stamps in 28 photos"),
        ("QC-27", "工单2张以上，工单编号8位"),
        ("QC-27", "データー27件"),
        ("QC-27", "when fewer than 3 samples or groups are shown"),
    ],
)
def test_ordinary_words_and_numbers_are_no_ticket(group: str, text: str) -> None:
    assert sample_id(text, (group,)) is None
    assert ticket_number(text, CHINESE) is None
    assert ticket_number(text, ENGLISH) is None


DIGITS = st.sampled_from([0x30, 0x660, 0x6F0, 0x966, 0x9E6, 0xE50, 0xFF10, 0x1D7CE])


@settings(max_examples=examples(200), deadline=None)
@given(IDS, DIGITS, AROUND, AROUND, st.integers(0, 99_999))
def test_an_identifier_is_found_in_the_digits_of_every_script(
    group: str, zero: int, before: str, after: str, number: int
) -> None:
    written = "".join(chr(zero + int(char)) if char in "0123456789" else char for char in group)
    assert sample_id(f"{before} {written} {after}", (group,)) is not None
    other = "".join(chr(zero + int(char)) for char in str(number))
    assert sample_id(f"{before} QC-{other} {after}", ("QC-27",)) is not None


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from("QԚqԛ"), st.sampled_from("CСcс"), AROUND)
def test_letters_that_look_the_same_are_the_same(first: str, second: str, around: str) -> None:
    assert sample_id(f"{around} {first}{second}-27 {around}", ("QC-27",)) is not None
    assert sample_id(f"{around} QC-27 {around}", (f"{first}{second}-27",)) is not None


# A quoted word is material, unless it is the verdict


@pytest.mark.parametrize(
    "text",
    [
        "若文中出现“待定”，则判定不通过。",
        "文中出现“证据不足”字样的，不通过",
        "出现“需复核”时，判定不通过",
        "若报告结论为“待定”，则判定不通过",
        "报告结论为“待定”的，判定不通过",
        "報告結論為「待定」時判定不通過",
        "若状态标记为“待复核”，且无签名，则判定不通过",
        'When "pending" occurs, the verdict is fail.',
        'When "inconclusive" occurs 2+ times, the verdict is fail.',
        'With 2+ of: "pending"; no "tested"; the verdict is fail.',
        '"pending" at the end: fail.',
        'Fail tickets with "needs review" in the title.',
        "The verdict is fail if the report's verdict is “uncertain”.",
        'A page whose result is "pending" fails.',
        'A page with the label "pending" fails.',
    ],
)
def test_a_quoted_word_that_the_rule_looks_for_is_no_third_state(text: str) -> None:
    assert reason(text, CHINESE if CJK.search(text) else ENGLISH) is None


@pytest.mark.parametrize(
    "text",
    [
        'The verdict is "uncertain".',
        'When it is blurry, the verdict is "uncertain"; otherwise fail.',
        'If blurry then "pending", else fail.',
        'Blurry → "pending"; missing → fail.',
        'If blurry, output "pending"; if missing, the verdict is fail.',
        'Missing labels fail; otherwise, "pending".',
        'If missing, fail; if blurry, mark the case as "needs review".',
        'It needs "review" when the label is missing: fail.',
        'When "pending" occurs, it is pending: fail.',
        '"Pending"',
        "判定“待定”",
        "若模糊，判定“待定”，否则判定不通过",
        "若标签缺失判定“待定”，否则判定不通过",
        "若模糊則判定為「待定」，否則判定不通過",
        "若模糊则“待定”；若缺失则判定不通过",
        "若缺失则不通过，若模糊则标记为“待复核”",
        "若证据“不足”，则判定不通过",
        "若模糊则判定“pending”，否则判定不通过",
    ],
)
def test_a_quoted_word_that_is_given_as_the_verdict_is_a_third_state(text: str) -> None:
    assert reason(text, CHINESE if CJK.search(text) else ENGLISH) == "third_state"


@pytest.mark.parametrize("name", shipped_languages())
def test_every_phrase_is_material_in_quotes_and_a_third_state_as_the_verdict(name: str) -> None:
    for number, phrase in enumerate(find_language(name).wording.third_state):
        plain = phrase.replace(" …", "")
        # Screening takes milliseconds and there are hundreds of phrases: each in one of the two languages in turn.
        if number % 2:
            assert reason(f"若文中出现“{plain}”，则判定不通过", CHINESE) is None, plain
            assert reason(f"若模糊则判定“{plain}”，否则判定不通过", CHINESE) == "third_state", plain
        else:
            assert reason(f'When "{plain}" occurs, the verdict is fail.', ENGLISH) is None, plain
            assert reason(f'When it is blurry, the verdict is "{plain}"; else fail.', ENGLISH) == "third_state", plain


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("若待定位标签缺失，则判定不通过", None),
        ("若待定，则判定不通过", "third_state"),
        ("若待定位标签待定，则判定不通过", "third_state"),
        ("若线缆通过但未固定，则判定不通过", None),
        ("若線纜通過但未固定，則判定不通過", None),
        ("若标签清晰则判定通过但需拍照", "third_state"),
        ("若标签清晰判定通过但需拍照，则判定通过", "third_state"),
        ("When the agent passes but a test fails, the verdict is fail.", None),
        ("When the agent passes, but a test fails, the verdict is fail.", None),
        ("Tests that pass but are slow: fail.", None),
        ("When all is fine it passes but needs a second look, else fail.", "third_state"),
        ("When all is fine, it passes but a photo is wanted.", "third_state"),
    ],
)
def test_a_part_of_a_longer_word_or_of_a_condition_is_no_third_state(text: str, code: str | None) -> None:
    assert reason(text, CHINESE if CJK.search(text) else ENGLISH) == code


# Screening covers text, falsifier and dimension

ZH_RULE = "若标签缺失，则判定不通过"


@pytest.mark.parametrize("field", ["text", "falsifier", "dimension"])
@pytest.mark.parametrize(
    ("phrase", "code"),
    [
        ("不确定", "third_state"),
        ("待确认", "third_state"),
        ("待確認", "third_state"),
        ("need-review", "third_state"),
        ("needReview", "third_state"),
        ("ＮＥＥＤ＿ＲＥＶＩＥＷ", "third_state"),
        ("uncertain", "third_state"),
        ("not sure", "third_state"),
        ("evidence is insufficient", "third_state"),
        ("待复检", "third_state"),
        ("maybe fail", "third_state"),
        ("fail or unknown", "third_state"),
        ("QC-27", "sample_id"),
        ("BBU设备/华为,显示完整", "copied_chain"),
        ("BBU设备／华为，显示完整", "copied_chain"),
        ("华为、显示完整、机柜空间充足", "copied_chain"),
    ],
)
def test_screening_covers_text_falsifier_and_dimension(field: str, phrase: str, code: str) -> None:
    hypothesis = guess(ZH_RULE, [SHOWN], dimension="外观")
    value = f"若{phrase}，则判定不通过" if field == "text" else phrase
    assert rejected(hypothesis | {field: value}) == [code]
    assert rejected(hypothesis) == []


@pytest.mark.parametrize(
    "dimension",
    [
        *(
            "厂商",
            "厂家",
            "廠商",
            "牌子",
            "品牌",
            "制造商",
            "供应商",
            "商标",
            "厂 商",
            "设备vendor",
            "vendor",
            "Vendors",
        ),
        *("ｖｅｎｄｏｒ", "vendorName", "manufacturer", "MANUFACTURER", "brand_name", "supplier", "maker"),
    ],
)
def test_no_hypothesis_is_about_a_brand_or_its_equivalent(dimension: str) -> None:
    assert is_brand(dimension, CHINESE)
    assert rejected(guess(ZH_RULE, [SHOWN], dimension=dimension)) == ["brand"]
    assert rejected(guess(mentions("a tear"), [SHOWN], dimension=dimension), ENGLISH) == ["brand"]


@pytest.mark.parametrize("field", ["text", "falsifier"])
@pytest.mark.parametrize(
    "phrase",
    [
        *("厂商为华为", "廠家是中兴", "牌子属于爱立信", "vendor is Acme", "Manufacturer equals Acme"),
        *(
            "设备品牌不是华为",
            "品牌不为华为",
            "厂商不属于华为",
            "廠商並非華為",
            "品牌非华为",
            "品牌≠华为",
            "品牌 = 华为",
        ),
        *("vendor is not Acme", "vendor isn't Acme", "brand was not Acme", "maker other than Acme", "vendor != Acme"),
        *("vendors are not Acme", "brand differs from Acme", "supplier must not be Acme"),
    ],
)
def test_no_rule_depends_on_which_brand_it_is(field: str, phrase: str) -> None:
    value = f"若{phrase}，则判定通过" if field == "text" else phrase
    assert rejected(guess(ZH_RULE, [SHOWN]) | {field: value}) == ["brand"]


@pytest.mark.parametrize(
    "phrase",
    [
        *(
            "品牌不为空",
            "厂商不清晰",
            "品牌未写明",
            "厂商不在合格名单",
            "vendor is not named",
            "vendor isn't on the list",
        ),
        *("brand is not legible", "supplier must be stated", "maker not given"),
    ],
)
def test_a_rule_may_ask_whether_a_brand_is_named(phrase: str) -> None:
    assert rejected(guess(f"若{phrase}，则判定不通过", [SHOWN])) == []


@pytest.mark.parametrize("dimension", ["global_local", "外观", "completeness", "grand total", "remark", "安装", "商业"])
def test_other_dimensions_are_allowed(dimension: str) -> None:
    assert rejected(guess(ZH_RULE, [SHOWN], dimension=dimension)) == []


@pytest.mark.parametrize("name", shipped_languages())
@pytest.mark.parametrize("asked", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_every_phrase_of_every_language_is_screened_in_each(name: str, asked: Language) -> None:
    """A Chinese rule may say it in English. Case, width, hyphens and joined words make no difference."""
    for phrase in find_language(name).wording.third_state:
        plain = phrase.replace(" …", "")
        spellings = [plain, plain.upper(), plain.replace(" ", "-"), plain.replace(" ", "_")]
        spellings += [] if "'" in plain else [plain.replace(" ", "")]
        for written in spellings:
            assert contains(f"若{written}则", phrase.replace(" …", ""), asked), written
        assert reason(f"若{plain}，则判定不通过", asked) == "third_state", plain
        if "…" not in phrase:
            assert is_unfit_phrase(phrase), "the default model must not propose it"


@pytest.mark.parametrize(
    ("text", "language", "verdict"),
    [
        ("若通过率低于90%，则判定不通过", CHINESE, "fail"),
        ("通过率低于90%，不通过", CHINESE, "fail"),
        ("若一次通過率高於95%，則判定通過", CHINESE, "pass"),
        ("若产品已通过认证，则判定通过", CHINESE, "pass"),
        ("未通过验收的，不通过", CHINESE, "fail"),
        ("若缺少螺丝/垫片,则判定不通过", CHINESE, "fail"),
        ("若确定已安装，则判定通过", CHINESE, "pass"),
        ("若厂商标签缺失，则判定不通过", CHINESE, "fail"),
        ("若检测报告显示pass字样，则判定通过", CHINESE, "pass"),
        ("Fail if the pass rate is below 90%.", ENGLISH, "fail"),
        ("If the unit passed the certification, fail.", ENGLISH, "fail"),
        ("If the unit passed the certification, the verdict is pass.", ENGLISH, "pass"),
        ("Fail reports that do not say who passed the certification.", ENGLISH, "fail"),
        ("The verdict is fail if the unit did not pass the test.", ENGLISH, "fail"),
        ("If the vendor's signature is missing, the verdict is fail.", ENGLISH, "fail"),
        ("If the vendor is not named, the verdict is fail.", ENGLISH, "fail"),
        ("If the manufacturer is missing, the verdict is fail.", ENGLISH, "fail"),
        ("若厂商为空，则判定不通过", CHINESE, "fail"),
        ("若厂家是否盖章未写明，则判定不通过", CHINESE, "fail"),
        ("If the clearance is below 3 cm, the verdict is fail.", ENGLISH, "fail"),
        ("If the reviewer is sure that it is sealed, pass.", ENGLISH, "pass"),
        ("If evidence of both sides is shown, the verdict is pass.", ENGLISH, "pass"),
    ],
)
def test_an_honest_rule_that_mentions_such_words_is_not_refused(text: str, language: Language, verdict: str) -> None:
    assert reason(text, language, (CHAIN, "螺丝/垫片,齐全", "a/b, c/d")) is None
    assert polarity(text, language) == verdict


@pytest.mark.parametrize(
    ("text", "language", "code"),
    [
        ("看通过率", CHINESE, "no_verdict"),
        ("关注一次通过率的变化", CHINESE, "no_verdict"),
        ("The pass rate matters.", ENGLISH, "no_verdict"),
        ("若完整则通过，否则不通过", CHINESE, "both_verdicts"),
        ("The verdict is fail where it is sealed, else pass.", ENGLISH, "both_verdicts"),
        ("The verdict is fail where it is sealed otherwise pass.", ENGLISH, "both_verdicts"),
        ("Pass if complete; fail if not.", ENGLISH, "both_verdicts"),
    ],
)
def test_a_pass_rate_is_no_verdict_and_two_verdicts_are_one_too_many(text: str, language: Language, code: str) -> None:
    assert reason(text, language) == code


def test_a_falsifier_is_short() -> None:
    assert rejected(guess(ZH_RULE, [SHOWN], falsifier="反例" * 161)) == ["too_long"]
    assert rejected(guess(ZH_RULE, [SHOWN], falsifier="多数此类工单标注为通过")) == []


# Operations


@pytest.mark.parametrize(
    ("known", "other", "language"),
    [
        ("When there is a log, the verdict is fail.", "When there is no log, the verdict is fail.", ENGLISH),
        ("If it comes with a log, the verdict is fail.", "If it comes without a log, the verdict is fail.", ENGLISH),
        ("If the fan is installed, the verdict is pass.", "If the fan is not installed, the verdict is pass.", ENGLISH),
        ("If the fan isn't installed, the verdict is fail.", "If the fan is installed, the verdict is fail.", ENGLISH),
        ("If the left seal is torn, the verdict is fail.", "If the right seal is torn, the verdict is fail.", ENGLISH),
        ("If it is legible and dry, the verdict is pass.", "If it is illegible and dry, the verdict is pass.", ENGLISH),
        ("If A is mounted before B, the verdict is pass.", "If B is mounted before A, the verdict is pass.", ENGLISH),
        ("If the count = 5, the verdict is pass.", "If the count != 5, the verdict is pass.", ENGLISH),
        ("If the count = 5, the verdict is pass.", "If the count ≠ 5, the verdict is pass.", ENGLISH),
        ("若机柜左侧挡风板已安装到位，则判定通过", "若机柜左侧挡风板未安装到位，则判定通过", CHINESE),
        ("若机柜左侧挡风板有标签，则判定不通过", "若机柜左侧挡风板无标签，则判定不通过", CHINESE),
        ("若机柜左侧挡风板有标签，则判定不通过", "若机柜左侧挡风板没有标签，则判定不通过", CHINESE),
        ("若机柜左侧挡风板完整，则判定不通过", "若机柜左侧挡风板不完整，则判定不通过", CHINESE),
    ],
)  # fmt: skip
def test_add_never_replaces_a_rule_that_says_something_else(known: str, other: str, language: Language) -> None:
    guidance = guidance_of(G1=known)
    for similar in (0.9, 0.5):
        under = terms_of([case(SHOWN)], guidance, language=language, similar=similar)
        [operation] = read(answer([add(other, [SHOWN])]), under).operations
        assert (operation.op, operation.key) == ("add", None)
        after = apply_change(guidance, operation, "")
        assert (after.experiences["G1"], after.experiences["G2"]) == (known, other)


def test_add_updates_a_rule_that_says_the_same_in_other_little_words() -> None:
    guidance = guidance_of(G1="When the seal of a box is torn, the verdict is fail.")
    said = answer([add("When the seal of the box is torn, then the verdict is fail.", [SHOWN])])
    [operation] = read(said, terms_of([case(SHOWN)], guidance)).operations
    assert (operation.op, operation.key) == ("update", "G1")


def test_merge_into_a_new_key_works() -> None:
    guidance = guidance_of(G1=mentions("a"), G2=mentions("b"))
    merge = {"op": "merge", "key": "G3", "merged_from": ["G1", "G2"], "text": mentions("c"), "evidence": [SHOWN]}
    [operation] = read(answer([merge]), terms_of([case(SHOWN)], guidance)).operations
    after = apply_change(guidance, operation, "")
    assert after.learned == {"G0": RULES["G0"], "G3": mentions("c")}
    assert after.metadata["G3"].sources == (SHOWN,)
    # A key that was used before is never used again, and one far away would leave none for others.
    for key in ("G1", "G900", "S2", "G01", "X"):
        refused = {**merge, "key": key, "merged_from": ["G3"], "text": mentions("d")}
        found = read(answer([refused]), terms_of([case(SHOWN)], after))
        [rejection] = found.rejections
        assert rejection.reason == ("scaffold_target" if key == "S2" else "unknown_rule")


@pytest.mark.parametrize("coverage", [None, [], ["QC-27::fail"], "all", 1, {}, {"covered_ticket_keys": None}])
def test_coverage_is_advice_whatever_its_form(coverage: Any) -> None:
    said = answer([add(mentions("x"), [SHOWN])], coverage=coverage)
    found = read(said, terms_of([case(SHOWN)]))
    assert [operation.text for operation in found.operations] == [mentions("x")]
    assert found.covered == {SHOWN}


def test_a_cached_answer_is_no_new_support_across_runs(tmp_path: Path) -> None:
    def guesses(request: ReflectionRequest) -> dict[str, Any]:
        return answer(hypotheses=[guess(mentions("captcha"), [case.key for case in cases_in(request)])])

    toml = f"{ONE_VOTE}{BARE}"
    mission = mission_in(tmp_path, small(10, 4), toml)
    cycles = []
    for number in range(3):
        run = learn(mission, ScriptedJudge(obedient, None, guesses))
        save_waiting_hypotheses(mission, run.state, f"run-{number}")
        [pooled] = run.state.pool.values()
        cycles.append(len(pooled.cycles))
        assert run.rules == RULES
    assert cycles == [1, 1, 1]
    # Another ticket makes another question, and its answer is new support.
    mission = mission_in(tmp_path, small(11, 4), toml)
    run = learn(mission, ScriptedJudge(obedient, None, guesses))
    assert run.rules == RULES | {"G1": mentions("captcha")}


def test_the_same_answer_to_the_same_question_is_counted_once_within_a_run() -> None:
    proposal = HypothesisProposal(mentions("captcha"), "one that passed", ("a::fail",))
    first = add_support({}, proposal, "1.1", ENGLISH, "one")
    pool = {first.signature: first}
    assert add_support(pool, proposal, "2.1", ENGLISH, "one").cycles == ("1.1",)
    assert add_support(pool, proposal, "2.1", ENGLISH, "two").cycles == ("1.1", "2.1")


# The scaffold has priority with every model

PROSE = {"S1": "照片看不清的，一律不能放行。", "G0": "若无规则另述，则判定通过。"}
READABLE = {"S1": "若文中出现“模糊”，则判定不通过（强信号）。", "G0": "若无规则另述，则判定通过。"}


def chinese_mission(folder: Path, rules: dict[str, str], count: int = 60) -> Path:
    """Photos of installed equipment, described in Chinese: those with a missing seal fail."""
    states = ("挡风板已安装", "线缆绑扎整齐", "标签粘贴牢固", "机柜内部整洁", "接地端子紧固")
    tickets = []
    for number in range(count):
        bad = number % 2 == 0
        state = "封条缺失" if bad else "封条完好"
        text = f"{states[number % 5]}，{state}，{states[number // 5 % 5]}，第{number}号机位"
        label = "fail" if bad else "pass"
        tickets.append({"group_id": f"QC-{number}", "mission": "质检", "label": label, "per_image": {"image_1": text}})
    folder.mkdir(parents=True)
    settings = 'mission = "质检"\nlanguage = "zh"\nepochs = 2\n[trial]\nmin_tickets = 10\n'
    (folder / "mission.toml").write_text(settings, encoding="utf-8")
    (folder / "initial_guidance.json").write_text(json.dumps(rules, ensure_ascii=False), encoding="utf-8")
    lines = (json.dumps(ticket, ensure_ascii=False) + "\n" for ticket in tickets)
    (folder / "tickets.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.mark.parametrize("verb", [["mission", "check"], ["learn"], ["audit-mission"], ["judge"]], ids=" ".join)
def test_a_scaffold_rule_that_the_model_cannot_read_is_reported_by_each_verb(
    donewhen: Run, tmp_path: Path, verb: list[str]
) -> None:
    folder = chinese_mission(tmp_path / "m", PROSE)
    files = [str(folder / "tickets.jsonl")] if verb == ["judge"] else []
    said = donewhen([*verb, str(folder), *files, "--json"], tmp_path)
    envelope = json.loads(said.stdout)
    assert said.returncode == 1
    assert "unread_scaffold" in [finding["code"] for finding in envelope["findings"]]
    assert all("S1" in finding["message"] for finding in envelope["findings"] if finding["code"] == "unread_scaffold")
    plain = donewhen([*verb, str(folder), *files], tmp_path)
    assert plain.returncode == 1
    assert "scaffold rule(s) S1" in plain.stdout + plain.stderr
    readable = chinese_mission(tmp_path / "readable", READABLE)
    files = [str(readable / "tickets.jsonl")] if verb == ["judge"] else []
    assert donewhen([*verb, str(readable), *files], tmp_path).returncode == 0


def test_it_is_said_before_anything_is_spent(tmp_path: Path) -> None:
    """The finding needs the model and the guidance, and no answer."""
    mission = read_mission(chinese_mission(tmp_path / "m", PROSE))
    model = Contrast()
    assert [finding.code for finding in unread_findings(mission, mission.guidance(), model)] == ["unread_scaffold"]
    assert unread_findings(mission, mission.guidance(), ScriptedJudge(obedient)) == []


def test_a_pass_that_an_unread_scaffold_rule_might_forbid_needs_manual_review(tmp_path: Path) -> None:
    for name, rules, expected in (("prose", PROSE, True), ("readable", READABLE, False)):
        mission = read_mission(chinese_mission(tmp_path / name, rules))
        judge = Judge(mission, mission.guidance(), Contrast())
        passed = judge.judge(Ticket("a", "质检", None, {"text": "封条完好"}, "a"))
        assert (passed.verdict, passed.signals.needs_manual_review) == ("pass", expected)
    mission = read_mission(chinese_mission(tmp_path / "fail", {**PROSE, "G0": "若无规则另述，则判定不通过。"}))
    failed = Judge(mission, mission.guidance(), Contrast()).judge(Ticket("a", "质检", None, {"text": "封条"}, "a"))
    assert (failed.verdict, failed.signals.needs_manual_review) == ("fail", False)


@pytest.mark.parametrize("rules", [PROSE, READABLE], ids=["prose", "readable"])
def test_the_report_says_whether_the_scaffold_was_read(tmp_path: Path, rules: dict[str, str]) -> None:
    result = learn_mission(read_mission(chinese_mission(tmp_path / "m", rules)), Contrast())
    codes = [note.code for note in result.report.notes]
    assert ("unread_scaffold" in codes) is (rules is PROSE)


# Every rule has an effect, or it is said that it has none

LOOSE = {
    "G0": "若无规则另述，则判定通过。",
    "G1": "只要螺丝松动，一律判定不通过。",
    "G2": "挡风板缺失时判定不通过。",
}
NO_DEFAULT = {"G0": "安装完整则判定通过。", "G1": "若文中出现“松动”，则判定不通过。"}
READ = {
    "G0": "若无其他规则适用，则判定通过。",
    "G1": "若文中出现“松动”，则判定不通过。",
    "G2": "若文中出现“挡风板缺失”，则判定不通过（强信号）。",
}


@pytest.mark.parametrize("verb", [["mission", "check"], ["learn"], ["audit-mission"], ["judge"]], ids=" ".join)
def test_a_guidance_rule_that_the_model_cannot_read_is_reported_by_each_verb(
    donewhen: Run, tmp_path: Path, verb: list[str]
) -> None:
    for name, rules, keys in (("loose", LOOSE, "G1, G2"), ("no-default", NO_DEFAULT, "G0"), ("read", READ, "")):
        folder = chinese_mission(tmp_path / name, rules)
        files = [str(folder / "tickets.jsonl")] if verb == ["judge"] else []
        said = donewhen([*verb, str(folder), *files, "--json"], tmp_path)
        findings = json.loads(said.stdout)["findings"]
        plain = donewhen([*verb, str(folder), *files], tmp_path)
        assert said.returncode == plain.returncode == bool(keys)
        assert [finding["code"] for finding in findings] == (["unread_guidance"] if keys else [])
        assert ("can't read" in plain.stdout + plain.stderr) is bool(keys)
        assert all(f"rule(s) {keys}," in finding["message"] for finding in findings)
        assert all(("the default is *fail*" in finding["message"]) is ("G0" in keys) for finding in findings)
        if verb == ["mission", "check"]:
            assert "--model" not in plain.stdout
            assert ("No problems." in plain.stdout) is (not keys)


@pytest.mark.parametrize(
    ("rules", "text", "verdict", "unread"),
    [
        (LOOSE, "封条完好", "pass", ("G1", "G2")),
        ({**LOOSE, "G0": "若无规则另述，则判定不通过。"}, "封条完好", "fail", ()),
        ({**LOOSE, "G3": "若文中出现“封条”，则判定不通过。"}, "封条完好", "fail", ()),
        ({**LOOSE, "S1": "若文中出现“封条”，则判定通过。"}, "封条完好", "pass", ()),
        ({**LOOSE, "G1": "螺丝要看仔细。"}, "封条完好", "pass", ("G1", "G2")),
        ({**LOOSE, "G0": "若无规则另述，则判定不通过。", "G1": "螺丝要看仔细。"}, "封条完好", "fail", ("G1",)),
        (NO_DEFAULT, "封条完好", "fail", ("G0",)),
        (NO_DEFAULT, "螺丝松动", "fail", ("G0",)),
        (READ, "封条完好", "pass", ()),
        (READ, "螺丝松动", "fail", ()),
    ],
)
def test_a_verdict_that_an_unread_rule_might_change_needs_manual_review(
    tmp_path: Path, rules: dict[str, str], text: str, verdict: str, unread: tuple[str, ...]
) -> None:
    mission = read_mission(chinese_mission(tmp_path / "m", rules))
    found = Judge(mission, mission.guidance(), Contrast()).judge(Ticket("a", "质检", None, {"text": text}, "a"))
    assert (found.verdict, found.unread_rules) == (verdict, unread)
    assert found.signals.needs_manual_review is bool(unread)
    assert Verdict.from_dict(json.loads(json.dumps(found.as_dict()))) == found


def test_a_model_that_reads_every_rule_is_not_affected(tmp_path: Path) -> None:
    mission = read_mission(chinese_mission(tmp_path / "m", LOOSE))
    model = ScriptedJudge(lambda _: "判定: 通过\n理由: 完好")
    found = Judge(mission, mission.guidance(), model).judge(Ticket("a", "质检", None, {"text": "封条完好"}, "a"))
    assert (found.verdict, found.unread_rules, found.signals.needs_manual_review) == ("pass", (), False)


def test_a_review_that_is_due_to_unread_rules_alone_is_no_gradient_candidate(tmp_path: Path) -> None:
    run = learn(read_mission(chinese_mission(tmp_path / "m", LOOSE)), Contrast())
    epoch = run.state.epochs[0]
    # Everything passes at first: the candidates are the tickets that should have failed, and no others.
    assert 0 < epoch.candidates == epoch.wrong < epoch.rolled
    assert epoch.candidates == epoch.covered + epoch.no_evidence + epoch.exhausted


@pytest.mark.parametrize("rules", [LOOSE, NO_DEFAULT, READ], ids=["loose", "no default", "read"])
def test_the_report_does_not_call_an_unread_rule_useless(tmp_path: Path, rules: dict[str, str]) -> None:
    result = learn_mission(read_mission(chinese_mission(tmp_path / "m", rules)), Contrast())
    notes = {note.code: note.text for note in result.report.notes}
    assert ("unread_guidance" in notes) is (rules is not READ)
    if rules is LOOSE:
        assert "G1" not in notes.get("idle_rules", "")
        assert "G1, G2" in notes["unread_guidance"]


def test_learned_rules_are_all_readable(tmp_path: Path) -> None:
    result = learn_mission(read_mission(chinese_mission(tmp_path / "m", READ, 120)), Contrast())
    assert result.state.changes
    assert unread_rules(Contrast(), result.state.guidance.rules) == ()


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("若无其他规则适用，则判定通过。", "pass"),
        ("如果没有其他规则适用，判定为不通过。", "fail"),
        ("没有规则适用时判定通过。", "pass"),
        ("默认判定通过。", "pass"),
        ("默认情况下，判定为不通过。", "fail"),
        ("除非规则另有规定，判定通过", "pass"),
        ("If no other rule applies, the verdict is pass.", "pass"),
        ("When no rule applies, the verdict is fail.", "fail"),
        ("Unless another rule applies, the verdict is pass", "pass"),
        ("The verdict is pass unless a rule says otherwise.", "pass"),
        ("By default, the verdict is fail.", "fail"),
        ("The default verdict is pass.", "pass"),
        # The other half of a rule is not the default: other rules may follow.
        ("Otherwise, the verdict is pass.", None),
        ("否则判定通过。", None),
        ("安装完整则判定通过。", None),
    ],
)
def test_plain_wordings_of_the_default_are_read(text: str, verdict: str | None) -> None:
    found = read_rule(text)
    assert found == (None if verdict is None else DefaultRule(verdict))  # type: ignore[arg-type]


def test_a_second_default_that_contradicts_the_first_is_unread() -> None:
    rules = {"G0": "默认判定通过。", "G1": "若文中出现“松动”，则判定不通过。默认判定不通过。"}
    assert [rule.key for rule in unread_rules(Contrast(), rules)] == ["G1"]
    assert unread_rules(Contrast(), {**rules, "G1": "默认判定通过。"}) == ()
    # The scaffold has priority, so its default may differ.
    assert unread_rules(Contrast(), {"S1": "默认判定不通过。", "G0": "默认判定通过。"}) == ()


def test_an_adopted_rule_no_longer_waits(tmp_path: Path) -> None:
    """However it was adopted: here as an operation, after it had been a hypothesis."""

    def guesses_then_adds(request: ReflectionRequest) -> dict[str, Any]:
        keys = [case.key for case in cases_in(request)]
        if request.attempt:
            return answer([add(mentions("captcha"), keys)])
        return answer(hypotheses=[guess(mentions("captcha"), keys[:1])])

    mission = mission_in(tmp_path, small(10, 4), f"{ONE_VOTE}{BARE}")
    result = learn_mission(mission, ScriptedJudge(obedient, None, guesses_then_adds))
    assert result.state.guidance.rules == RULES | {"G1": mentions("captcha")}
    assert [(row.state, row.became) for row in result.report.hypotheses] == [("promoted", "G1")]
    assert waiting_pool(mission) == ()
    # A hypothesis that an earlier version left there does not come back.
    [pooled] = result.state.pool.values()
    left = [msgspec.to_builtins(msgspec.structs.replace(pooled, fate="waiting", key=""))]
    (mission.folder / "hypotheses.json").write_text(json.dumps(left))
    assert waiting_pool(mission) == ()
    assert learn(mission, ScriptedJudge(obedient, None, lambda _: answer())).state.pool == {}


def test_a_chinese_mission_end_to_end_with_the_default_model(donewhen: Run, tmp_path: Path) -> None:
    """Checked, learned, judged and audited; the rule is Chinese, and the scaffold has the last word."""
    folder = chinese_mission(tmp_path / "质检", READABLE, 120)
    assert donewhen(["mission", "check", str(folder)], tmp_path).returncode == 0
    learned = donewhen(["learn", str(folder), "--json"], tmp_path)
    assert learned.returncode == 0
    rules = json.loads((folder / "guidance.json").read_text(encoding="utf-8"))["质检"]["experiences"]
    assert rules["S1"] == READABLE["S1"]
    added = {key: text for key, text in rules.items() if key not in ("S1", "G0")}
    assert added
    assert all(wording_objection(text, CHINESE, 160, ("QC-1",), ()) is None for text in added.values())
    new = [("封条缺失，机柜内部整洁", "fail"), ("封条完好，机柜内部整洁", "pass"), ("封条完好，照片模糊", "fail")]
    lines = [json.dumps({"group_id": f"新{at}", "mission": "质检", "text": text}) for at, (text, _) in enumerate(new)]
    (tmp_path / "new.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    judged = donewhen(["judge", str(folder), str(tmp_path / "new.jsonl"), "--json"], tmp_path)
    assert judged.returncode == 0
    verdicts = json.loads(judged.stdout)["data"]["verdicts"]
    assert [verdict["verdict"] for verdict in verdicts] == [verdict for _, verdict in new]
    audit = donewhen(["audit-mission", str(folder), "--json"], tmp_path)
    assert audit.returncode == 0


# Mission files in the style of the original

CONFIG = """\
stage_a_paths:
  - output/stage_a.jsonl
  - output/stage_a_more.jsonl
seed: 17
model:
  model_name_or_path: output/checkpoint
  torch_dtype: bfloat16
guidance:
  path: output/initial_guidance.json
  retention: 5
output:
  root: output/stage_b
sampler:
  samples_per_decode: 2
  format_filter: true
  grid:
    - {temperature: 0.1, top_p: 0.9, max_new_tokens: 512, seed: 42, stop: []}
    - {temperature: 0.5, top_p: 0.95, max_new_tokens: 512, seed: 43, stop: []}
manual_review:
  min_verdict_agreement: 0.8
reflection:
  prompt_path: prompts/reflection.txt
  batch_size: 8
  max_operations: 3
  change_cap_per_epoch: 10
  retry_budget_per_group_per_epoch: 1
  max_calls_per_epoch: null
  temperature: 0.3
  top_p: 0.9
runner:
  epochs: 3
"""


def original_files(folder: Path, config: str = CONFIG) -> Path:
    (folder / "output").mkdir(parents=True)

    def line(number: int) -> str:
        label = "fail" if number % 2 else "pass"
        record = {"mission": "挡风板安装检查", "group_id": f"QC-{number}", "label": label, "images": [f"{number}.jpeg"]}
        texts = {"image_1": f"挡风板/已安装,方向正确,{number}", "image_2": "标签/清晰"}
        return json.dumps({**record, "per_image": texts, "label_source": "human"}, ensure_ascii=False)

    for name, numbers in (("stage_a", range(6)), ("stage_a_more", range(6, 10))):
        (folder / "output" / f"{name}.jsonl").write_text("\n".join(map(line, numbers)) + "\n", encoding="utf-8")
    entry = {
        "step": 4,
        "updated_at": "2025-12-01T00:00:00Z",
        "experiences": {
            "G0": "安装完整则判定通过。",
            "S1": "先看全局图，再看局部图。",
            "G1": "若缺少挡风板，则判定不通过。",
        },
        "metadata": {"G1": {"hit_count": 3}},
    }
    other = {"step": 0, "experiences": {"G0": "判定通过。"}}
    guidance = {"挡风板安装检查": entry, "BBU接地线检查": other}
    text = json.dumps(guidance, ensure_ascii=False)
    (folder / "output" / "initial_guidance.json").write_text(text, encoding="utf-8")
    (folder / "run.yaml").write_text(config, encoding="utf-8")
    return folder / "run.yaml"


def test_mission_init_reads_the_files_of_the_original(donewhen: Run, tmp_path: Path) -> None:
    config = original_files(tmp_path)
    said = donewhen(["mission", "init", str(config), "wind", "--json"], tmp_path)
    assert said.returncode == 0, said.stderr
    mission = read_mission(tmp_path / "wind")
    settings = mission.settings
    assert (mission.name, settings.language) == ("挡风板安装检查", "zh")
    assert (settings.seed, settings.epochs, settings.manual_review.min_verdict_agreement) == (17, 3, 0.8)
    assert [(row.temperature, row.samples) for row in settings.sampler] == [(0.1, 2), (0.5, 2)]
    reflection = settings.reflection
    assert (reflection.batch_size, reflection.max_operations, reflection.max_changes_per_epoch) == (8, 3, 10)
    assert (reflection.retry_budget_per_group_per_epoch, reflection.max_calls_per_epoch) == (1, None)
    assert mission.guidance().rules == {
        "S1": "先看全局图，再看局部图。",
        "G0": "安装完整则判定通过。",
        "G1": "若缺少挡风板，则判定不通过。",
    }
    tickets = list(mission.tickets())
    assert len(tickets) == 10
    assert dict(tickets[0].evidence) == {"image_1": "挡风板/已安装,方向正确,0", "image_2": "标签/清晰"}
    assert (tickets[0].key, tickets[0].label_source) == ("QC-0::pass", "human")


def test_what_has_no_counterpart_is_named(donewhen: Run, tmp_path: Path) -> None:
    config = original_files(tmp_path)
    data = json.loads(donewhen(["mission", "init", str(config), "wind", "--dry-run", "--json"], tmp_path).stdout)[
        "data"
    ]
    assert set(data["no_counterpart"]) == {
        *("model.model_name_or_path", "model.torch_dtype", "guidance.retention", "output.root"),
        *("sampler.format_filter", "sampler.grid.top_p", "sampler.grid.max_new_tokens", "sampler.grid.seed"),
        *("sampler.grid.stop", "reflection.prompt_path", "reflection.temperature", "reflection.top_p"),
        *("guidance.step", "guidance.updated_at", "guidance.metadata", "guidance.BBU接地线检查"),
    }
    assert data["columns"]["unused"] == ["images"]
    plain = donewhen(["mission", "init", str(config), "wind", "--dry-run"], tmp_path).stdout
    for key in data["no_counterpart"]:
        assert f"no counterpart, left out: {key}" in plain
    assert not (tmp_path / "wind").exists()


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (("batch_size: 8", "batch_size: 0"), "run.yaml:23"),
        (("min_verdict_agreement: 0.8", "min_verdict_agreement: high"), "run.yaml:20"),
        (("change_cap_per_epoch: 10", "change_cap_per_epoch: -1"), "run.yaml:25"),
        (("  epochs: 3", "  epochs: none"), "run.yaml:31"),
        (("{temperature: 0.1,", "{temperature: 9.0,"), "run.yaml:17"),
        (("top_p: 0.9, max", "samples: many, max"), "run.yaml:17"),
        (("- output/stage_a_more.jsonl", "- output/missing.jsonl"), "run.yaml"),
        (("seed: 17", "seed: ["), "run.yaml"),
        (("stage_a_paths:\n  - output/stage_a.jsonl\n  - output/stage_a_more.jsonl\n", ""), "run.yaml"),
    ],
)
def test_an_invalid_file_of_the_original_is_refused_with_its_place(
    donewhen: Run, tmp_path: Path, change: tuple[str, str], where: str
) -> None:
    config = original_files(tmp_path, CONFIG.replace(*change))
    said = donewhen(["mission", "init", str(config), "wind", "--json"], tmp_path)
    assert said.returncode == 2
    [finding] = json.loads(said.stdout)["findings"]
    assert where in finding["where"]
    assert not (tmp_path / "wind").exists()


def test_a_guidance_file_can_be_brought_to_other_tickets(donewhen: Run, tmp_path: Path) -> None:
    original_files(tmp_path)
    tickets, guidance = tmp_path / "output" / "stage_a.jsonl", tmp_path / "output" / "initial_guidance.json"
    said = donewhen(["mission", "init", str(tickets), "wind", "--guidance", str(guidance)], tmp_path)
    assert said.returncode == 0, said.stderr
    assert list(read_mission(tmp_path / "wind").guidance().rules) == ["S1", "G0", "G1"]


def test_rules_of_another_mission_are_not_taken(donewhen: Run, tmp_path: Path) -> None:
    original_files(tmp_path)
    tickets, guidance = tmp_path / "output" / "stage_a.jsonl", tmp_path / "other.json"
    guidance.write_text(json.dumps({"乙": {"step": 0, "experiences": LOOSE}}), encoding="utf-8")
    command = ["mission", "init", str(tickets), "wind", "--guidance", str(guidance), "--json"]
    said = donewhen(command, tmp_path)
    assert said.returncode == 2
    [finding] = json.loads(said.stdout)["findings"]
    assert "挡风板安装检查" in finding["message"]
    assert "--name: 乙" in finding["next"]
    assert not (tmp_path / "wind").exists()


def test_guidance_without_g0_is_refused_for_that_reason(donewhen: Run, tmp_path: Path) -> None:
    original_files(tmp_path)
    tickets, guidance = tmp_path / "output" / "stage_a.jsonl", tmp_path / "rules.json"
    guidance.write_text(json.dumps({"G1": LOOSE["G1"]}), encoding="utf-8")
    said = donewhen(["mission", "init", str(tickets), "wind", "--guidance", str(guidance), "--json"], tmp_path)
    assert said.returncode == 2
    [finding] = json.loads(said.stdout)["findings"]
    assert "G0 is missing" in finding["message"]


def test_mission_init_shows_the_g0_that_it_writes_and_names_unread_rules(donewhen: Run, tmp_path: Path) -> None:
    config = original_files(tmp_path)
    plain = donewhen(["mission", "init", str(config), "wind"], tmp_path)
    assert plain.returncode == 0
    written = json.loads((tmp_path / "wind" / "initial_guidance.json").read_text(encoding="utf-8"))
    assert f"G0: {written['G0']}" in plain.stdout
    assert plain.stdout.count("G0: ") == 1
    assert "can't read the scaffold rule(s) S1," in plain.stdout
    assert "can't read the rule(s) G0, G1," in plain.stdout
    said = donewhen(["mission", "init", str(config), "again", "--dry-run", "--json"], tmp_path)
    assert len(json.loads(said.stdout)["data"]["warnings"]) == 2


def test_a_new_mission_names_its_scaffold_rules_that_the_default_model_cannot_read(
    donewhen: Run, tmp_path: Path
) -> None:
    said = donewhen(["mission", "new", "m", "--rule", "Look at the screws.", "--json"], tmp_path)
    [warning] = json.loads(said.stdout)["data"]["warnings"]
    assert "S1" in warning
    said = donewhen(["mission", "new", "n", "--rule", "When a box is unchecked, the verdict is fail."], tmp_path)
    assert (said.returncode, "can't read" in said.stdout) == (0, False)
