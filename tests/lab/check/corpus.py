"""A folder of a few documents, and rows with sources, about which questions can be made."""

from __future__ import annotations

from pathlib import Path

DOCUMENTS = {
    "hr/leave.md": "# Leave\n\nFull-time employees have 30 days of paid leave each year.\n\nRequests are sent to the "
    "HR office at least 14 days in advance. The parental leave lasts 12 months.\n",
    "hr/travel.md": "# Travel\n\nThe travel allowance is 45 euros a day. Receipts are handed in within 60 days.\n",
    "it/backup.md": "# Backups\n\nBackups are kept for 90 days. The maximum size of a mailbox is 50 GB.\n",
    "it/access.md": "# Access\n\nPasswords must have at least 14 characters. A locked account is opened again after 20 "
    "minutes.\n",
}


def write_documents(folder: Path, documents: dict[str, str] = DOCUMENTS) -> Path:
    for name, text in documents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder
