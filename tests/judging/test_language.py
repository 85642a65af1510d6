"""Languages are data, and what a judge relies on is in them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from judging_kit import mission_in, write_mission

from donewhen.foundation.canonical import digest
from donewhen.foundation.errors import ConfigError
from donewhen.judging.answer import JudgeAnswer, read_answer
from donewhen.judging.guidance import seed_guidance
from donewhen.judging.language import PROMPTS, SHIPPED, Language, find_language, read_language, shipped_languages
from donewhen.judging.mission import read_mission
from donewhen.judging.prompt_rendering import shared_prompt_part
from sentences import assert_sentences

THIRD_STATE_ZH = [
    "复核",
    "需复核",
    "需要复核",
    "人工复核",
    "需人工复核",
    "证据不足",
    "待定",
    "不应直接",
    "不建议直接",
    "不得直接",
    "不宜直接",
    "佐证",
    "需进一步",
    "需要进一步",
    "进一步确认",
    "第三态",
    "不写不通过",
    "通过但",
    "无法判断",
]
THIRD_STATE_EN = [
    "needs review",
    "manual review",
    "review needed",
    "inconclusive",
    "insufficient evidence",
    "to be determined",
    "pending",
    "cannot determine",
    "unclear",
    "pass but",
    "further confirmation",
    "should not directly",
]


def test_chinese_and_english_are_shipped() -> None:
    assert shipped_languages() == ("en", "zh")
    english, chinese = find_language("en"), find_language("zh")
    assert (english.name, english.title, chinese.name, chinese.title) == ("en", "English", "zh", "中文")
    assert (english.answer.pass_, english.answer.fail) == ("pass", "fail")
    assert (chinese.answer.pass_, chinese.answer.fail) == ("通过", "不通过")
    assert (english.answer.verdict, english.answer.reason) == ("Verdict", "Reason")


@pytest.mark.parametrize("word", THIRD_STATE_ZH)
def test_chinese_knows_every_wording_of_a_third_state(word: str) -> None:
    assert word in find_language("zh").wording.third_state


@pytest.mark.parametrize("word", THIRD_STATE_EN)
def test_english_knows_every_wording_of_a_third_state(word: str) -> None:
    assert word in find_language("en").wording.third_state


@pytest.mark.parametrize("start", ["不应", "不建议", "不要", "不得"])
@pytest.mark.parametrize("end", ["判定为", "判断为", "判为"])
def test_chinese_knows_every_ambiguous_negation(start: str, end: str) -> None:
    assert start + end in find_language("zh").wording.ambiguous_negation


def test_both_know_what_a_brand_is() -> None:
    assert "brand" in find_language("en").wording.brand
    assert {"brand", "品牌"} <= set(find_language("zh").wording.brand)


@pytest.mark.parametrize("name", ["en", "zh"])
def test_no_wording_stands_there_twice_or_empty(name: str) -> None:
    wording = find_language(name).wording
    for words in (wording.third_state, wording.ambiguous_negation, wording.brand):
        assert words
        assert len(set(words)) == len(words)
        assert all(word == word.strip() and word for word in words)


@pytest.mark.parametrize("name", ["en", "zh"])
def test_the_prompt_of_a_shipped_language_asks_for_what_its_reader_reads(name: str) -> None:
    language = find_language(name)
    shared = shared_prompt_part(seed_guidance("m", {"G0": "x"}, ""), language)
    last = shared.rstrip().split("\n")[-2:]
    assert last[0].startswith(f"{language.answer.verdict}: {language.answer.pass_}")
    assert language.answer.fail in last[0]
    assert last[1].startswith(f"{language.answer.reason}: ")
    answer = f"{language.answer.verdict}: {language.answer.fail}\n{last[1]}"
    assert isinstance(read_answer(answer, language.answer), JudgeAnswer)


def test_prompts_are_named_by_what_is_in_them() -> None:
    language = find_language("en")
    assert list(language.hashes) == sorted(PROMPTS)
    for name, found in language.hashes.items():
        assert found == digest((SHIPPED / "en" / f"{name}.md").read_bytes())
    assert len({*language.hashes.values(), *find_language("zh").hashes.values()}) == 6


def own_language(folder: Path, name: str = "de", source: str = "en") -> Path:
    target = folder / "languages" / name
    shutil.copytree(SHIPPED / source, target)
    toml = target / "language.toml"
    text = toml.read_text(encoding="utf-8").replace('name = "en"', f'name = "{name}"')
    text = text.replace('"Verdict"', '"Urteil"').replace('pass = "pass"', 'pass = "bestanden"')
    toml.write_text(text.replace('fail = "fail"', 'fail = "durchgefallen"'), encoding="utf-8")
    return target


def test_a_mission_brings_its_own_language(tmp_path: Path) -> None:
    write_mission(tmp_path, 'language = "de"\n')
    own_language(tmp_path)
    language = read_mission(tmp_path).language
    assert (language.name, language.answer.verdict, language.answer.pass_) == ("de", "Urteil", "bestanden")
    assert read_answer("Urteil: Durchgefallen\nReason: x", language.answer) == JudgeAnswer("fail", "x")
    assert "Urteil: bestanden or durchgefallen" in shared_prompt_part(seed_guidance("m", {"G0": "x"}, ""), language)


def test_a_missions_own_language_comes_before_the_shipped_one(tmp_path: Path) -> None:
    own_language(tmp_path, "en")
    assert find_language("en", tmp_path).answer.verdict == "Urteil"
    assert find_language("en").answer.verdict == "Verdict"


def test_a_language_can_be_named_by_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_language(tmp_path, "de").rename(tmp_path / "words")
    assert find_language("./words", tmp_path).name == "de"
    monkeypatch.chdir(tmp_path)
    assert find_language("./words").name == "de"
    (tmp_path / "language.toml").write_bytes((SHIPPED / "en" / "language.toml").read_bytes())
    for prompt in PROMPTS:
        (tmp_path / f"{prompt}.md").write_bytes((SHIPPED / "en" / f"{prompt}.md").read_bytes())
    assert find_language(".", tmp_path).name == "en"


def test_an_unknown_language_names_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        mission_in(tmp_path, 'language = "fr"\n')
    assert_sentences(caught.value)
    assert "languages/NAME" in str(caught.value.next_step)
    assert caught.value.where == f"{tmp_path / 'mission.toml'}:2"


def test_the_words_of_the_mission_are_those_of_its_answers_and_prompts(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, '[verdict]\npass = "ship it"\nfail = "hold"\n')
    words = mission.language.answer
    assert (words.pass_, words.fail, words.verdict) == ("ship it", "hold", "Verdict")
    assert read_answer("Verdict: Ship It\nReason: x", words) == JudgeAnswer("pass", "x")
    assert not isinstance(read_answer("Verdict: pass\nReason: x", words), JudgeAnswer)
    shared = shared_prompt_part(mission.initial_guidance(), mission.language)
    assert "Verdict: ship it or hold" in shared
    assert "pass or fail" not in shared


def test_one_word_may_be_the_missions_and_the_other_the_languages(tmp_path: Path) -> None:
    words = mission_in(tmp_path, '[verdict]\nfail = "reject"\n').language.answer
    assert (words.pass_, words.fail) == ("pass", "reject")


@pytest.mark.parametrize(
    ("pass_", "fail"),
    [("ok", "ok"), ("ok", "OK"), ("ok", "ok "), ("ok", "ｏｋ"), ("fail", ""), ("", "Pass"), ("straße", "STRASSE")],
)
def test_words_that_no_answer_could_tell_apart_are_refused(tmp_path: Path, pass_: str, fail: str) -> None:
    with pytest.raises(ConfigError) as caught:
        mission_in(tmp_path, f'\n[verdict]\npass = "{pass_}"\nfail = "{fail}"\n')
    assert_sentences(caught.value)
    assert caught.value.where == f"{tmp_path / 'mission.toml'}:3"


@pytest.mark.parametrize("word", [" ", "\\u3000", "a\\nb", "a\\u200bb"])
def test_a_word_that_nobody_can_write_is_refused(tmp_path: Path, word: str) -> None:
    with pytest.raises(ConfigError) as caught:
        mission_in(tmp_path, f'[verdict]\npass = "{word}"\n')
    assert_sentences(caught.value)


def test_words_and_prompts_change_the_identity_and_nothing_else_does(tmp_path: Path) -> None:
    language = find_language("en")
    assert language.identity == read_language(SHIPPED / "en").identity
    assert language.with_words(None, None).identity == language.identity
    assert language.with_words("ok", None).identity != language.identity
    assert language.with_words(None, "bad").identity != language.identity
    folder = tmp_path / "en"
    shutil.copytree(SHIPPED / "en", folder)
    assert read_language(folder).identity == language.identity
    with (folder / "ops.md").open("a") as file:
        file.write("\n")
    assert read_language(folder).identity != language.identity


@pytest.mark.parametrize("table", ["third_state", "ambiguous_negation", "brand"])
def test_another_list_of_what_no_rule_may_say_is_another_identity(tmp_path: Path, table: str) -> None:
    folder = tmp_path / "en"
    shutil.copytree(SHIPPED / "en", folder)
    path = folder / "language.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(f"{table} = [", f'{table} = ["perhaps", '), encoding="utf-8")
    assert "perhaps" in getattr(read_language(folder).wording, table)
    assert read_language(folder).identity != find_language("en").identity


def test_a_language_that_was_read_does_not_change() -> None:
    language = find_language("en")
    for struct, field in ((language, "prompts"), (language.answer, "pass_"), (language.wording, "brand")):
        with pytest.raises(AttributeError):
            setattr(struct, field, ())


def test_a_word_of_the_mission_leaves_the_shipped_language_as_it_was() -> None:
    find_language("en").with_words("ship", "hold")
    assert find_language("en").answer.pass_ == "pass"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return own_language(tmp_path)


def problem(folder: Path) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read_language(folder)
    return caught.value


@pytest.mark.parametrize("name", ["language.toml", "rollout.md", "decision.md", "ops.md"])
def test_a_file_that_is_missing_or_no_text_is_named(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"\xff\xfe")
    error = problem(folder)
    assert (error.where, "not UTF-8" in error.message) == (str(folder / name), True)
    (folder / name).unlink()
    error = problem(folder)
    assert error.where == str(folder / name)
    assert_sentences(error.message)


def test_a_language_file_is_as_strict_as_a_mission(folder: Path) -> None:
    path = folder / "language.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("version = 1", "versoin = 1"), encoding="utf-8")
    error = problem(folder)
    assert error.where == f"{path}:4"
    assert_sentences(error.next_step)
    for table in ("answer", "wording"):
        path.write_text(text.replace(f"[{table}]", f'[{table}]\nother = "x"'), encoding="utf-8")
        error = problem(folder)
        assert (error.message.partition(":")[0], str(error.where).rpartition(":")[0]) == (f"{table}.other", str(path))
    path.write_text("name = ", encoding="utf-8")
    error = problem(folder)
    assert error.where == str(path)
    assert_sentences(error.message)


@pytest.mark.parametrize("field", ["scaffold", "guidance"])
@pytest.mark.parametrize("prompt", ["rollout", "decision", "ops"])
def test_a_prompt_without_the_rules_is_refused(folder: Path, prompt: str, field: str) -> None:
    path = folder / f"{prompt}.md"
    path.write_text(path.read_text(encoding="utf-8").replace(f"{{{field}}}", "none"), encoding="utf-8")
    error = problem(folder)
    assert (error.where, f"{{{field}}}" in error.message) == (str(path), True)


@pytest.mark.parametrize(
    "text", ["{label}", "{ticket}", "{scaffold.__class__}", "{0}", "{}", "{", "}", '{"verdict": "pass"}', "{g0}"]
)
def test_a_prompt_with_a_field_that_nothing_fills_is_refused(folder: Path, text: str) -> None:
    path = folder / "rollout.md"
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")
    assert problem(folder).where == str(path)


def test_doubled_braces_in_a_prompt_are_braces(folder: Path) -> None:
    path = folder / "rollout.md"
    path.write_text(path.read_text(encoding="utf-8") + "{{label}}", encoding="utf-8")
    language: Language = read_language(folder)
    assert shared_prompt_part(seed_guidance("m", {"G0": "x"}, ""), language).endswith("{label}")


def test_agreements_know_a_shipped_language_by_its_first_wording() -> None:
    # Sealed in ledgers: lists of words that have grown since void no agreement.
    assert {name: find_language(name).agreed_identity for name in shipped_languages()} == {
        "en": "sha256:7f2c3d97a800266c509fa12c6fc9749dd71f62090e31e0f804c1c8fdf975ff56",
        "zh": "sha256:5608e65e47a17e8ad138bb17aa01459cbf7e8ea03e490c7be1a86699f0e0fa85",
    }


def test_the_wording_of_a_missions_own_language_is_part_of_the_agreement(folder: Path) -> None:
    before = read_language(folder).agreed_identity
    path = folder / "language.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"manual review", ', "", 1), encoding="utf-8")
    assert read_language(folder).agreed_identity != before
    path.write_text(text, encoding="utf-8")
    (folder / "agreed_wording.json").write_text("{}", encoding="utf-8")
    assert read_language(folder).agreed_identity == before
