"""The vocabulary of texts that say nothing, by language: data for `placeholders`.

``OPEN`` marks what is still missing. ``FUNCTION`` words carry no meaning of their own. ``TEMPLATE`` words are those of
which templates consist, and ``ANSWER`` words those of empty answers; both count beside a word with content.
Words are folded when they are read, so accents and letter case don't matter here.
"""

from __future__ import annotations

# Values of a short output, which count as numbers do.
VALUES = "yes no true false"
OPEN = {
    "en": "tbd tba tbc tbs todo wip fixme lorem ipsum dolor sit amet consectetur adipiscing elit na later soon here "
    "eventually tomorrow undecided",
    "de": "später offen folgt demnächst",
    "fr": "bientôt",
    "es": "pendiente luego",
    "it": "dopo",
    "pt": "depois",
    "nl": "nader",
    "ru": "позже потом уточнить уточняется",
}
OPEN_PHRASES = {
    "en": "to do|not yet|yet to come|to come|to follow|coming soon|go here|goes here|fill in|fill out|fill me in|"
    "fill this in|fill this out|fill it in|not defined|not decided|this is a placeholder|"
    "same as above|see above|see below|as discussed|for now",
    "de": "noch offen|noch zu klären|wird noch|wird nachgereicht|steht noch aus|noch nicht",
    "fr": "à définir|à faire|à compléter|à préciser|à déterminer|à remplir|à venir|à confirmer|plus tard",
    "es": "por definir|por hacer|por completar|por determinar|por confirmar|por rellenar|a definir|más tarde",
    "it": "da definire|da fare|da completare|da determinare|da confermare|da compilare|più tardi",
    "pt": "a definir|por definir|a fazer|a preencher|a completar|a determinar|mais tarde",
    "nl": "nog te bepalen|nog in te vullen|nog niet|nog open",
    "ru": "не определено|будет определено|будет позже|в работе",
}
TO_BE = (
    "done defined determined added filled written decided completed confirmed specified announced provided described "
    "updated agreed discussed clarified continued documented supplied chosen set finalized finalised populated"
)
FUNCTION = {
    "en": "the a an of for to be is are was were been being in at by with and or as on this that these those we you i "
    "me my your our us them some will would should shall can could may might must do does did has have had what how "
    "why who when which where if then than so please just from into needs need remains still yet already also now like",
    "de": "der die das den dem des ein eine einen zu zum zur und oder ist sind wird werden noch im mit von auf für",
    "fr": "le les des une est sont sera et ou du pour avec dans ce cette encore à",
    "es": "el los las un una y para por del aún",
    "it": "il gli una sono da ancora",
    "pt": "uma são para por ainda",
    "nl": "de een is zijn en of nog te",
    "ru": "это будет еще",
}
# Words of templates that a job may also be about: two of them say something, as in *Add a task*.
TEMPLATE_OBJECTS = (
    "item items step steps point points task tasks job jobs project workstream workstreams input inputs output outputs "
    "deliverable deliverables dependency dependencies level checklist line title list add edit update change write "
    "enter type note start"
)
TEMPLATE = {
    "en": "criterion criteria acceptance requirement requirements ac objective objectives goal goals purpose evidence "
    "verification plan optional required placeholder placeholders template dummy example sample content contents text "
    "value description detail details information info something stuff first second third fourth next another "
    "describe fill state make explain replace insert put define specify provide give outline summarize summarise "
    "mention include go goes going know prove success checkable measurable specific testable verifiable real actual "
    "concrete auto populated autopopulated lesson lessons",
    "de": "kriterium kriterien anforderung aufgabe ziel schritt punkt beschreiben definieren ergänzen ausfüllen klären "
    "festlegen eintragen hier platzhalter",
    "fr": "critère critères objectif exigence tâche étape définir compléter préciser remplir décrire ici",
    "es": "criterio criterios objetivo requisito tarea paso definir completar rellenar describir aquí",
    "it": "criterio criteri obiettivo requisito compito passo definire completare compilare descrivere qui",
    "pt": "critério critérios objetivo requisito tarefa passo definir completar preencher descrever aqui",
    "nl": "criterium criteria doel taak stap bepalen invullen beschrijven hier",
    "ru": "критерий критерии цель задача шаг описать определить заполнить здесь",
}
ANSWER = {
    "en": "ok okay okey yep yeah nope none nothing nil done finished complete completed fine good great nice "
    "perfect cool pass passed lgtm verified checked approved accepted confirmed agreed sure same ditto "
    "unknown pending open closed ready met fulfilled satisfied it they he she all any every everything anything "
    "not never only there looks look seems ack roger thanks",
    "de": "ja nein fertig erledigt gut passt geprüft bestätigt alles nichts klar kein keine",
    "fr": "oui non fait terminé bon bien fini validé rien aucun tout parfait",
    "es": "sí hecho listo bien bueno terminado nada ninguno todo perfecto vale",
    "it": "fatto finito bene buono pronto niente nessuno tutto",
    "pt": "sim não feito pronto bom terminado nada nenhum tudo",
    "nl": "het ja nee klaar goed gedaan geen niets alles",
    "ru": "готово сделано да нет хорошо ок выполнено завершено все ничего",
}
ANSWER_PHRASES = {
    "en": "no problem|no problems|no issue|no issues|thumbs up|not applicable|well done|looks good|all good",
    "de": "in ordnung|alles gut|kein problem|keine angabe",
    "fr": "pas de problème|d accord",
    "es": "sin problema|sin problemas|de acuerdo",
    "ru": "нет проблем|все хорошо",
}
# Scripts without spaces between words, and Korean: found inside a run of letters, the longest first.
UNSPACED_OPEN = {
    "zh": "待定义 待定 待填写 待填 待补充 待补 待完善 待办 待确定 待确认 待议 待讨论 未定 未填写 请填写 尚未 稍后 以后 "
    "后补 暂定 暂无 待 的 了 已 已经 请 在此 此处 这里 任务 标准 验收标准 验收 目标 条件 描述 填写 输入 占位符 示例 "
    "写点什么 待定義 待補 待補充 待填寫 請填寫 尚未填寫 暫無 稍後 驗收標準",
    "ja": "未定 未記入 未入力 未設定 要検討 検討中 後で あとで のちほど 後ほど です ます でした である する した して "
    "ここに 記入 入力 記述 記載 してください 基準 受け入れ基準 目標 タスク 項目 済み 済",
    "ko": "미정 추후 나중에 작성 예정 작성예정 추가 입력 여기에 했습니다 합니다 되었습니다 됩니다 입니다 했음 됨 함 "
    "기준 목표 작업 항목",
}
UNSPACED_ANSWER = {
    "zh": "好 好的 行 是 对 完成 完毕 完了 可以 没问题 没有问题 没有 無 无 通过 确认 正常 没事 同意 成功 结束 全部 都 "
    "沒問題 沒有問題 通過 確認 結束",
    "ja": "良い はい いいえ なし 無し 完了 完成 確認 問題なし 問題ない 問題ありません 合格 大丈夫 終了 オーケー",
    "ko": "완료 없음 확인 네 예 좋음 문제없음 문제 좋아요 통과 성공 정상 승인 끝",
}
UNEDITED = (
    # Of new plans, and of the original tool's templates.
    "What must be true for this to be done? Replace this line.",
    "State the objective.",
    "State the objective for this job.",
    "State the project goal.",
    "State the goal.",
    "State the purpose.",
    "Make these objective and checkable.",
    "Make this objective and checkable.",
    "List required inputs (files, links, constraints).",
    "List inputs.",
    "List outputs.",
    "List the outputs.",
    "List required outputs.",
    "List required inputs.",
    "List the inputs.",
    "List required outputs and where they go.",
    "List outputs and where they will live (match `outputs:` frontmatter).",
    "List deliverables.",
    "List the deliverables.",
    "Make them objective and checkable.",
    "Define what done means (outputs + checks).",
    "Describe the goal in plain language.",
    "Describe how we will prove acceptance criteria are satisfied.",
    "Describe how we will prove acceptance criteria are satisfied, and what evidence files will be written.",
    "How we'll prove acceptance criteria are met.",
    "Describe the result.",
    "To be filled at job start by lessons retrieval.",
    "Optional checklist items.",
    "Workstream-level dependencies.",
    "Explain how this workstream supports the project goal.",
    "Auto-populated at job start.",
    "What does success look like?",
    # Of nobody.
    "Lorem",
    "Lorem ipsum",
    "Lorem ipsum dolor",
    "Lorem ipsum dolor sit amet",
    "TBD",
    "TBA",
    "TBC",
    "TODO",
    "FIXME",
    "XXX",
    "n/a",
    "fill in",
    "fill this in",
    "placeholder",
    "criterion",
    "criteria",
    "acceptance criteria",
    "Your criteria here",
    "Add criteria here",
    "First criterion",
    "待定",
    "待填写",
    "待补充",
    "未定",
    "미정",
)
