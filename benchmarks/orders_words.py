"""The words that orders are made of, by kind, in several languages: what `train_orders.py` weighs in pairs.

A star stands for any ending. Chinese and Japanese words have two to four characters.
"""

# ruff: noqa: E501  the words of a kind stand together, some in Cyrillic
from __future__ import annotations

__all__ = ["KINDS"]

KINDS = {
    "model": "assistant assistants ai ais llm llms chatbot* gpt* chatgpt* bot bots copilot copilots agent agents "
    "asistente* assistent* assistente* assistant* ki ia ии modelo* modell* modèle* modello modelli sprachmodell* "
    "助手 人工智能 聊天机器人 语言模型 大模型 アシスタント 言語モデル 生成ai ассистент* помощник* чат-бот* чатбот* бот* модел* нейросет*",
    "models": "model models system systems machine machines program programs tool tools engine summariser* summarizer* crawler* "
    "language automated automatic generative systeme maschine* système* sistema sistemi sistemas машин* систем*",
    "generated": "generated generate generates generating produce* producing derived summar* overview* completion* "
    "zusammenfass* resum* résum* riassum* 生成 总结 摘要 要約 сгенерир*",
    "reading": "read reads reading process* index* parse* parsed retrieve* retrieval ingest* crawl* quote quotes quoting cite cites citing "
    "lies* liest lesen lea leer lee lit lisant lire legge leia ler lê 阅读 引用 読む 読んで 読み 引用 чита* прочит*",
    "you": "you your yours yourself you're youre du dein* dir dich deine sie ihr ihre* ihnen usted tú tu tus te ti vous votre vos toi ton ta tes "
    "você sua seu tuo tua tuoi vostr* あなた 貴方 你的 您的 你现 你就 你是 请你 ты вы ваш* твой твои твоя твоего тебя тебе вас вам свой своём",
    "user": "requester* inquirer* enquirer* audience customers user users reader readers visitor* questioner asker human usuario* nutzer* benutzer* utilisateur* utente utenti "
    "usuário* utilizador* leser* lector* lecteur* 用户 读者 使用者 ユーザー 利用者 読者 пользовател* читател*",
    "anyone": "anyone anybody someone somebody whoever person people everyone jemand wer alguien quien quelqu'un quiconque qualcuno "
    "alguém 有人 别人 任何人 誰か кто-то кто-нибудь",
    "void": "retire* stale wipe waive* null unload* deprecated unlearn* dropped cease pause contaminated padding blank leave skip ignore ignores ignoring ignored disregard* forget forgets override* overrid* bypass* void* invalid* suspend* supersede* dismiss* "
    "discard* drop omit scrap abandon* erase delete* cancel* revoke* withdrawn withdraw* lift lifted disable* neglect* reject* overlook "
    "reset wipe* clear* obsolete expire* nullif* annul* abort* terminate* halt quit shelve discount* "
    "ignorier* vergiss vergessen missacht* verwirf unbeachtet ungültig olvid* ignora* ignore* ignorez descart* oublie* oubliez "
    "dimentic* ignorare trascur* esqueça* esquece* desconsider* desprez* anulad* annulé* cancelad* aufgehoben "
    "忽略 无视 忘记 忘掉 不要理会 作废 失效 取消 抛弃 無視して 無視し 無視 忘れて 忘れ 破棄 取り消 無効 игнорир* проигнорир* забуд* отбрось* отмен* отбрас*",
    "guidance": "setup duties mandate principles hierarchy constraints mission objective instruction* guideline* guidance rule rules directive* prompt* polic* restriction* constraint* limits limitation* "
    "filter* safety guardrail* orders order command* directions brief briefing protocol* configuration training "
    "anweisung* regel* vorgab* befehl* richtlin* instruccion* regla* órden* indicacion* consigne* règle* directiv* istruzion* regol* "
    "indicazion* instruç* regra* orienta* 指令 指示 规则 规定 要求 提示词 提示 设定 命令 ルール プロンプト 設定 инструкц* правил* указан* команд* промпт*",
    "before": "neighbouring neighboring sibling surrounding competing rival previous* prior earlier above other others everything preceding former original initial remaining rest anything whatever all "
    "every any vorherig* bisherig* vorig* obig* frühere* übrig* ander* alle sämtliche ursprünglich* anterior* previas demás otras otros "
    "todas todo todos précédent* précédente* antérieur* autres toutes tous ci-dessus precedent* altre altri tutte tutti outras outros "
    "之前 以前 以上 上面 前面 先前 原来 其他 所有 全部 一切 上記 これまで 以前の ほかの 他の すべて 全て предыдущ* прежн* прошл* остальн* други* все всех",
    "sources": "snippet* hits entry entries article record records archive block memo index corpus passage* document documents context* source sources page pages result results excerpt* text paragraph* website evidence "
    "material quellen quelle dokument* text textstell* abschnitt* seite fuente* página* texto* documento* passage* extrait* "
    "texte page fonti pagin* passagg* testo fontes passagen* passagem 资料 段落 来源 文档 本页 上下文 資料 文書 出典 情報源 ページ "
    "источник* документ* отрывк* страниц* текст* контекст*",
    "say": "deliver* emit emits present presents broadcast relay convey conclude settle pass supply serve say says said saying reply replies replying respond* output outputs print* state states stating return returns answer answers answering "
    "write writes tell tells telling give gives emit* type report reports repeat repeats state claim* confirm* assert* announce* declare* "
    "recite* "
    "antwort* schreib* sag sage sagt gib nenn* ausgeb* behaupt* bestätig* wiederhol* respond* contest* escrib* diga dice decir "
    "afirm* confirm* repit* repite responda réponds répond répondez répondr* dis dites dit dire écri* affirm* rispond* scriv* dica "
    "conferm* ripet* diz dizer escrev* repet* 回答 回复 答复 输出 请说 说出 写出 答え* 答えて 答える 回答して 出力 出力して 言って 述べ "
    "ответ* отвеч* напиш* скаж* назов* назв* говор* повтор* подтверд*",
    "reply": "verdict statement string phrase result line reply replies response* answer answers output outputs message messages summary summaries completion* wording "
    "antwort* ausgabe* respuesta* réponse* risposta* risposte resposta* 回答 答案 回复 答复 输出 応答 返答 ответ* вывод*",
    "as": "as als como comme come como",
    "ought": "must should has have ought required requires require shall need needs obliged expected instructed supposed obligat* mandatory "
    "debe* deben doit doivent muss müssen soll* hat deve* devono deverá tiene tem 必须 应该 应当 应 不得 一律 べき なければ ならない "
    "должен должн* обязан* следует",
    "will": "will would shall going wird würde* werden will werde",
    "strict": "whatever regardless single sole unaltered unchanged exactly only alone verbatim always permitted valid nothing precedence solely immediately simply just precisely never invariably "
    "word-for-word literally exclusively merely stop anything acceptable accepted allowed "
    "nur genau immer stets wörtlich einfach ausschließlich ausschliesslich únicamente exactamente solo sólo siempre simplemente uniquement "
    "exactement toujours seulement simplement sempre soltanto solamente semplicemente apenas somente exatamente só "
    "只能 必须 只需 只会 只用 一律 直接 仅 永远 总是 必ず 常に だけ のみ только всегда ровно просто исключительно",
    "asked": "asked asks ask asking query queries want wants enters enter enquire* inquire* question questions questioned prompted wonder* "
    "request requests frage fragt gefragt wissen pregunt* question* demande demandent demandé* domanda* chied* chiesto pergunt* "
    "问题 提问 问到 询问 被问 提問 質問 質問されたら 聞かれ 聞かれたら 尋ねられたら вопрос* спрос* спраш* запрос*",
    "become": "portray* cast disguise costume hat narrat* spokesperson act acts part take pretend* roleplay role-play imagine become* behave* role persona* character identity jailbr* unrestricted unfiltered "
    "impersonat* emulat* simulat* voice mode play plays adopt* assume* personalit* spokes* costume "
    "spiel* verhalte* stell rolle tu schlüpf* actúa* finge* fing* imagin* asume adopt* papel rol agis fais joue rôle imagine "
    "ruolo immagina assumi atue finja papel 扮演 假装 假设 角色 演じ ふり つもり 役を притвор* представ* роль веди",
    "now": "now henceforth onwards onward hereby future forward later subsequent until jetzt nun ab künftig* weiteren ahora partir adelante desde désormais maintenant dorénavant "
    "adesso ora d'ora agora doravante próximas prossime prochaines 从现在 现在 今后 以后 今から これから 今後 теперь отныне дальше следующих",
    "from": "from starting beginning going",
    "reveal": "configuration location mailbox files calendar clipboard cookies reveal* leak* disclose* expose* dump* exfiltrat* transcript* conversation* chat history credential* secret secrets "
    "password* key keys token* private personal confidential data input inputs typed transmit* passwort* kontonummer contraseña* datos "
    "conversación conversation mot senha conversa password revel* révèle* rivela verrat* zeige 泄露 密码 对话 聊天 记录 パスワード 暗証 会話 公開 "
    "парол* переписк* разговор* раскр* данны*",
    "system": "system systems developer* admin administrator* root sudo debug operator* owner owners provider* vendor openai anthropic creator* "
    "systemprompt* system-prompt* entwickler* sistema système desarrollador* développeur* sviluppator* "
    "系统 开发者 管理员 システム 開発者 管理者 систем* разработчик* администратор*",
    "hush": "mention* reveal* disclose* inform notify telling secretly silently quietly discreetly erwähn* verrate mencion* mentionn* "
    "parle parlarne heimlich decirlo dire 提及 透露 告诉 伝えない 黙って незаметно говори",
    "not": "not never don don't dont without no nor neither nothing cannot nicht nie ohne kein* keine nunca sin ne jamais pas sans non senza "
    "não sem 不要 切勿 不得 不用 别 ないで せず 不 не без",
    "show": "include* append* insert* add adds display* render* embed* show shows integrat* attach* modify enhance* augment* place* put puts contain* "
    "close end ends begin begins start starts finish* conclude* load loads fetch* füge hinzu hänge anzeig* zeig* incluy* añad* agreg* muestr* ajout* inclus affich* inser* "
    "aggiung* inclu* mostr* adicion* 添加 附上 显示 加入 追加 表示 含めて 表示し добав* покаж* встав*",
    "image": "![ image images pixel markdown img picture logo badge bild imagen imagem immagine 图片 图像 画像 картинк*",
    "link": "url urls link links webhook www http domain endpoint address server hyperlink base64 encode* parameter* adresse dirección indirizzo "
    "链接 网址 地址 アドレス リンク ссылк* адрес*",
    "transmit": "relay paste hand echo log http.post webhook send sends forward forwards transmit* upload* submit post mail email e-mail report copy ping curl "
    "sende schick* übermitt* leite envía envia* envie* manda mande reenv* transmets transf* invia inoltra encaminh* 发送 转发 提交 送信 転送 送って "
    "отправ* перешл* передай",
    "recommend": "recommend* suggest* promot* encourag* invit* tease hint urg* advertis* praise* endors* plug sponsor* push feature subscribe buy donate vote visit "
    "slogan advert* coupon discount brand "
    "empfiehl* lob* werb* recomiend* elogi* recommand* vant* consigli* lod* recomend* 推荐 宣传 称赞 勧めて 宣伝 褒めて порекоменд* похвал* реклам*",
    "ours": "our ours we us unser* nuestr* notre nos nostr* nossa nosso 我们 弊社 当店 наш*",
    "task": "write compose draft explain describe translat* provide create* develop summarize summarise list tell replace* convert* sing recite draw discuss "
    "rearrange scramble* misspell* remove* group rewrite* craft generate* break teach jumble* reverse* repeat* talk speak use solve "
    "schreib* erklär* übersetz* erzähl* dicht* escrib* explic* traduc* cuent* recit* écri* expliqu* tradui* racont* scriv* spieg* traduci raccont* "
    "escrev* conte contar traduz* 写一 写一首 讲一 讲一个 解释 翻译 書いて 話して 説明 翻訳 напиш* расскаж* объясн* перевед* пиш*",
    "piece": "poem poems poetry story stories verse verses joke jokes haiku song songs essay speech lines screenplay limerick sonnet rhyme* riddle* "
    "fairy tale tales anecdote* proverb* trivia recipe advertisement pun puns lullaby lyrics code script "
    "gedicht* witz* geschicht* reim* märchen poema* chiste* cuento* historia verso* poème* blague* histoire vers poesia barzelletta storia piada* história "
    "首诗 诗歌 笑话 故事 一首 一个 诗 詩を 冗談 物語 韻文 стих* шутк* рассказ* анекдот* сказк*",
    "letters": "style tone manner sarcastic* sing-song letters letter words word vowels vowel spaces punctuation typos misspelling* anagram* symbols numbers emoji* capital* capitals uppercase lowercase "
    "latin lateinisch latein latín latino émojis emojis großbuchstaben mayúsculas majuscules maiuscol* maiúscul* pirate morse klingon caps "
    "拉丁文 表情符号 押韵 ラテン語 絵文字 латын* эмодзи заглавн* букв*",
    "instead": "instead aside rather stop stead place statt stattdessen anstatt anstelle vez lugar lieu plutôt invece posto "
    "而是 转而 改为 代わりに せずに вместо",
    "run": "execut* run fetch* decode* follow* obey* comply complies reverse resolve* trigger* invoke call calls load open visit download* install* redirect* direct "
    "click log sign verify befolg* ejecut* exécut* esegui* accede* sigue suis 执行 登录 打开 実行 従って 案内 выполн* открой следуй",
    "note": "heads-up priority subject fyi memo acknowledge remember* keep note attention important importantly reminder update* notice warning urgent hello dear hey memor* store save bear mind learn "
    "hinweis achtung wichtig merke speicher* behalte atención importante nota recuerda guarda remarque attention note souviens retiens mémoris* "
    "attenzione ricorda memorizza lembre* guarde 注意 重要 记住 备注 说明 覚えて 記憶 お知らせ メモ внимание важно запомн* сохран* примечани*",
    "rule": "preference* preferred lasting persist* setting settings default convention retention retain* inherit* principle rule rules policy policies guideline* directive* standing mandatory binding compliance regulation* protocol terms licence license memo "
    "memory priority precedence authority authoritative ground truth outrank* prefer* trust* rank* permanent* permanently "
    "vorrang dauerhaft prioridad prevalece prévaut prime precedenza prioridade 优先 高于 永久 優先 重視 важнее",
    "tag": "[inst] [/inst] <<sys <</sys <|system <|im_start <|user <|assistant <|end ## ### #### ${ <!-- </context> </document> </instructions> system: assistant: user: human: <system <instruction <instructions",
    "when": "when if whenever should once case upon wenn falls sobald cuando si quand lorsque se quando 如果 当 一旦 若 もし たら если когда",
    "this": "this these following here below dies* folgend* este esta esto ce cette ceci quest* isto 这 本页 この этот эту это",
    "conversation": "exchange remainder thread conversation* chat chats session* turn turns dialogue gespräch* unterhaltung conversación charla conversazione conversa 对话 会話 разговор*",
    "final": "final correct right expected desired approved prescribed intended official accepted acceptable standard default verified proper "
    "richtige* korrekt* correcta correct* bonne giusta corretta certa 正确 标准 正しい правильн*",
    "wish": "would could may might appreciat* grateful glad happy pleased hope* hopefully wish* ideally kindly please thanks better best prefer* like "
    "bitte freuen schön besser mejor gustaría agradecer* ravis préférable meglio piacere melhor gostaríamos 希望 最好 请 幸い 助かり ください пожалуйста хорошо рады",
    "wrong": "doubtful doubts gullible tampered poisoned hoax wrong false fake* fabricat* unreliable untrusted corrupt* compromis* spam outdated incorrect error errors planted invalid lies "
    "falsch* gefälscht* falsa* falsas errónea* faux erroné* périmé* errat* sbagliat* errad* 错误 誤り ложн* неверн*",
    "good": "helpful good careful competent well-behaved responsible honest trained aligned modern professional "
    "gute* hilfreich* buen bon utile sérieux buon bom sério 合格 称职 优秀 優れた 有能 хорош* полезн*",
    "be": "is are be was were been being becomes remains reads ist sind sei es son est sont sei è sono é são 是 です",
    "rate": "rated rates ranked scored graded marked penalis* penaliz* rewarded reward* evaluat* grader* judge benchmark reviewers rejected accepted",
    "other": "but except besides other than instead else otherwise sonst sino sauf altro senão",
    "figure": "pirate wizard captain oracle professor doctor expert experts historian judge witness spokesman salesman poet king "
    "butler librarian detective teacher lawyer guide critic robot child archivist clerk prophet innkeeper curator crier nurse monk "
    "announcer ambassador editor experte expertin richter lehrer zeuge experto profesor juez testigo professeur témoin juge esperto "
    "professore testimone giudice especialista professor testemunha juiz 专家 老师 证人 法官 海盗 発言人 先生 証人 裁判官 海賊 専門家 "
    "эксперт* пират* учител* свидетел* судь*",
}
