"""Mails, chats and tickets that an order or a look-alike is planted in, with heads, greetings and quotes."""

from __future__ import annotations

from random import Random

__all__ = ["mail"]

HEADS = (
    ("From", "To", "Subject", "Date"),
    ("Von", "An", "Betreff", "Datum"),
    ("De", "À", "Objet", "Date"),
    ("De", "Para", "Asunto", "Fecha"),
    ("De", "Para", "Assunto", "Data"),
    ("Da", "A", "Oggetto", "Data"),
    ("Van", "Aan", "Onderwerp", "Datum"),
    ("Od", "Do", "Temat", "Data"),
    ("От", "Кому", "Тема", "Дата"),
    ("Kimden", "Kime", "Konu", "Tarih"),
    ("差出人", "宛先", "件名", "日時"),
    ("发件人", "收件人", "主题", "时间"),
    ("sender", "recipients", "subject", "timestamp"),
)
"""What the fields of a head are called."""

PEOPLE = (
    "Anna Weiss", "Ben Carter", "M. Rossi", "Kenji Tanaka", "Li Wei", "Olga Novak", "Sara Haddad", "Tomás Silva",
    "The accounts team", "Front desk", "Nguyen Thi Lan", "J. de Vries", "Support", "Piotr", "Dr. Okafor", "HR",
)  # fmt: skip

GREETINGS = (
    "Hi,", "Hello {name},", "Dear {name},", "Dear all,", "Good morning,", "Hallo {name},",
    "Liebe Kolleginnen und Kollegen,", "Sehr geehrte Damen und Herren,", "Bonjour,", "Bonjour {name},",
    "Hola {name}:", "Prezados,", "Ciao {name},", "Beste {name},", "Dzień dobry,", "Здравствуйте!",
    "Merhaba {name},", "お疲れ様です。", "您好，", "Xin chào,", "Hej {name}!", "", "", "",  # noqa: RUF001
)  # fmt: skip

CLOSINGS = (
    "Best,", "Thanks!", "Kind regards", "Cheers", "Best wishes,", "Viele Grüße", "Mit freundlichen Grüßen",
    "Cordialement,", "Un saludo,", "Atenciosamente,", "Cordiali saluti", "Groeten,", "Pozdrawiam", "С уважением,",  # noqa: RUF001
    "Saygılarımla", "よろしくお願いします。", "此致", "Trân trọng,", "Mvh", "Sent from my phone", "--", "", "",  # noqa: RUF001
)  # fmt: skip


def mail(text: str, around: list[str], random: Random) -> tuple[str, str]:
    """A mail, a chat or a ticket with a text in it, and the text as it stands there."""
    sender, reader = random.sample(PEOPLE, 2)
    body = _body(text, around, random)
    chance = random.random()
    if chance < 0.15:
        return f"[{_time(random)}] {sender}: {around[0]}\n[{_time(random)}] {reader}: {text}\n", text
    if chance < 0.25:
        return f"Ticket #{random.randint(100, 99999)}\nRequester: {sender}\nStatus: open\n\n{body}\n", text
    greeting = random.choice(GREETINGS).format(name=reader.split()[0])
    whole = "\n".join(
        part for part in (greeting, *([""] if greeting and random.random() < 0.5 else []), body) if part or greeting
    )
    closing = random.choice(CLOSINGS)
    signed = f"{whole}\n\n{closing}\n{sender}\n" if closing and random.random() < 0.8 else f"{whole}\n"
    if random.random() < 0.2:
        quoted = "\n".join(f"> {part}" for part in around[:2])
        signed = f"{signed}\nOn {_day(random)} {reader} wrote:\n{quoted}\n"
    return _head(sender, reader, around[0], random) + signed, text


def _body(text: str, around: list[str], random: Random) -> str:
    """A text alone, before, behind or between sentences."""
    between = random.choice((" ", " ", "\n", "\n", "\n\n"))
    at = random.randint(0, min(len(around), 4))
    many = random.randint(0, 3)
    return between.join([*around[max(0, at - many) : at], text, *around[at : at + many]])


def _head(sender: str, reader: str, about: str, random: Random) -> str:
    if random.random() < 0.2:
        return ""
    names = random.choice(HEADS)
    values = [
        _address(sender, random),
        _address(reader, random),
        " ".join(about.split()[: random.randint(2, 7)]),
        _day(random),
    ]
    shown = list(zip(names, values))[: random.choice((3, 3, 4))]
    random.shuffle(shown)
    return "".join(f"{name}: {value}\n" for name, value in shown) + random.choice(("\n", "\n", ""))


def _address(person: str, random: Random) -> str:
    name = ".".join(part.strip(".").lower() for part in person.split()[:2])
    address = f"{name}@{random.choice(('firma', 'office', 'school', 'clinic', 'shop'))}.example"
    return random.choice((address, address, f"{person} <{address}>", person))


def _day(random: Random) -> str:
    day, month, year = random.randint(1, 28), random.randint(1, 12), random.randint(2021, 2027)
    return random.choice(
        (f"{year}-{month:02}-{day:02}", f"{day}.{month}.{year}", f"{month}/{day}/{year}, {_time(random)}")
    )


def _time(random: Random) -> str:
    return f"{random.randint(7, 21)}:{random.randint(0, 59):02}"
