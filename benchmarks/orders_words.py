"""The words that orders are made of, by kind, in several languages: what `train_orders.py` weighs in pairs.

A star stands for any ending. Chinese and Japanese words have two to four characters.
"""

# ruff: noqa: E501  the words of a kind stand together
from __future__ import annotations

__all__ = ["KINDS"]

KINDS = {
    "model": "assistant assistants ai llm llms chatbot* gpt* chatgpt* bot bots asistente assistent assistente ki ia "
    "modelo modell modèle 助手 人工智能 聊天机器人 アシスタント ассистент* модель",
    "machine": "automated generated generator language systems",
    "you": "you your yours yourself du dein* sie ihr ihre* usted tú tu vous votre você あなた 你的 您的 ты вы ваш*",
    "user": "user users reader readers visitor* usuario* nutzer* benutzer* utilisateur utente usuário* 用户 ユーザー пользовател*",
    "void": "leave skip ignore ignoring ignored disregard* forget override* bypass* void invalid* suspend* supersede* dismiss "
    "ignorier* vergiss vergessen missacht* olvida* ignora* ignorez oubliez oublie dimentica* ignorare esqueça* ignorar "
    "忽略 无视 忘记 不要理会 無視して 無視 忘れて игнорир* забуд*",
    "guidance": "instruction instructions guideline* guidance rule rules directive* prompt* polic* restriction* "
    "filter* safety anweisung* regel* vorgaben instruccion* regla* consigne* règle* istruzion* regol* instruç* regra* "
    "指令 指示 规则 提示词 プロンプト инструкц* правил* указан*",
    "before": "previous* prior earlier above other others everything preceding former vorherig* bisherig* vorig* obig* "
    "anterior* previas précédent* précédente* ci-dessus precedent* 之前 以前 上面 先前 上記 これまで предыдущ*",
    "sources": "passage passages document documents context contexts source sources page pages",
    "say": "say says reply replies respond* output outputs print state return answer answers answered write tell give "
    "antwort* schreib* sag sage gib nenn* respond* contest* escrib* di responda réponds répondez dis dites écri* "
    "rispond* scriv* 回答 回复 输出 请说 写出 答え* 答えて 出力 ответ* напиш* скаж*",
    "reply": "reply replies response* answer answers output message messages antwort* respuesta* réponse* risposta* "
    "resposta* 回答 答案 回复 応答 返答 ответ*",
    "as": "as als como comme come",
    "ought": "must should has have ought required shall debe* doit doivent muss müssen soll* deve devono 必须 должен должн*",
    "strict": "exactly only alone verbatim always permitted valid nothing precedence solely immediately simply "
    "nur genau immer ausschließlich ausschliesslich únicamente exactamente solo sólo siempre uniquement exactement "
    "toujours seulement sempre soltanto apenas exatamente 只能 必须 只需 一律 必ず только всегда",
    "asked": "asked asks ask query queries want enters question questions prompted wants frage gefragt pregunta* preguntan question* demande "
    "demandé* domanda* chiesto pergunt* 问题 问到 被问 质問 聞かれ вопрос* спрос* спраш*",
    "become": "act part take pretend roleplay imagine become behave role persona character jailbr* unrestricted spiel* verhalte "
    "actúa finge agis fingi atue 扮演 假装 演じ притвор*",
    "now": "now henceforth onwards ab jetzt ahora désormais maintenant adesso agora 从现在 现在 今から теперь",
    "reveal": "reveal* leak* disclose expose dump exfiltrat* transcript conversation credentials secret secrets "
    "password* keys",
    "system": "system systems developer admin administrator root mode system* 系统 システム",
    "hush": "mention tell reveal disclose inform notify erwähn* mencion* mentionn* 提及 透露",
    "not": "not never don without nicht nie no nunca ne jamais non não 不要 切勿 не",
    "show": "include append insert add display render embed show integrate attach modify enhance augment place put "
    "close end füge anzeige zeig* incluye añade agrega ajoute* inclus affich* aggiungi inclua adicione 添加 附上 显示 "
    "追加 表示 добав* покаж*",
    "image": "![ image pixel markdown",
    "link": "url urls link links webhook www http domain endpoint",
    "recommend": "recommend suggest promote encourage invite tease hint urge empfiehl* recomienda recommand* 推荐",
    "task": "write compose draft explain describe translate provide create develop summarize list tell replace convert "
    "rearrange scramble misspell remove group rewrite craft generate break teach sing schreib* erklär* übersetz* escrib* "
    "explica* traduc* écri* expliqu* tradui* scriv* spieg* escrev* expliqu* 写一 解释 翻译 讲一 書いて 説明 翻訳 напиш* "
    "объясн* перевед*",
    "piece": "poem poems story stories verse joke jokes haiku song essay speech lines screenplay limerick sonnet "
    "gedicht* witz* geschichte poema* chiste* cuento* poème* blague* histoire poesia barzelletta* piada* 首诗 诗歌 "
    "笑话 故事 詩を 冗談 стих* шутк* рассказ*",
    "letters": "letters letter words word vowels vowel spaces punctuation typos misspellings anagram* symbols numbers",
    "instead": "instead aside rather stop statt stattdessen anstatt vez lugar lieu plutôt invece 而是 转而 代わりに "
    "вместо",
    "run": "execute run fetch decode follow obey comply reverse resolve post send transmit trigger forward führe "
    "ejecuta exécut* esegui 执行 実行 выполн*",
    "note": "remember keep note attention important reminder update notice hinweis achtung wichtig atención importante remarque "
    "attenzione 注意 重要 внимание важно",
    "tag": "[inst] [/inst] <<sys <</sys <|system <|im_start <|user <|assistant <|end ## ### #### ${",
    "when": "when if whenever should wenn falls cuando si quand se quando 如果 当 もし если когда",
    "conversation": "conversation chat session turn",
}
