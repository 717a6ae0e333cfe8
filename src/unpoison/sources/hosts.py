"""Hosts where users write: there the source is the user, not the host. Data; a policy's `hosts` adds to it."""

from __future__ import annotations

__all__ = ["ARCHIVES", "CASED", "PLAIN", "SHARED", "USERS"]

USERS: dict[str, str] = {
    "github.com/*": "",
    "github.com/orgs/*": "github.com/*",
    "gist.github.com/*": "github.com/*",
    "raw.githubusercontent.com/*": "github.com/*",
    "gist.githubusercontent.com/*": "github.com/*",
    "codeload.github.com/*": "github.com/*",
    "gitlab.com/*": "",
    "bitbucket.org/*": "",
    "codeberg.org/*": "",
    "sourceforge.net/projects/*": "",
    "huggingface.co/*": "",
    "huggingface.co/datasets/*": "huggingface.co/*",
    "huggingface.co/spaces/*": "huggingface.co/*",
    "kaggle.com/*": "",
    "medium.com/*": "",
    "*.medium.com": "medium.com/@*",
    "*.substack.com": "",
    "*.tumblr.com": "",
    "tumblr.com/*": "*.tumblr.com",
    "*.wordpress.com": "",
    "*.blogspot.com": "",
    "*.wixsite.com": "",
    "*.weebly.com": "",
    "*.livejournal.com": "",
    "*.fandom.com": "",
    "*.cdn.ampproject.org": "",
    "*.translate.goog": "",
    "translate.google.com/translate/*": "",
    "dev.to/*": "",
    "telegra.ph/*": "",
    "reddit.com/user/*": "",
    "reddit.com/u/*": "reddit.com/user/*",
    "reddit.com/r/*": "",
    "x.com/*": "",
    "twitter.com/*": "x.com/*",
    "bsky.app/profile/*": "",
    "threads.net/*": "",
    "mastodon.social/*": "",
    "facebook.com/*": "",
    "facebook.com/groups/*": "",
    "facebook.com/people/*": "",
    "instagram.com/*": "",
    "tiktok.com/*": "",
    "linkedin.com/in/*": "",
    "linkedin.com/company/*": "",
    "linkedin.com/pulse/*": "",
    "youtube.com/*": "",
    "youtube.com/c/*": "",
    "youtube.com/user/*": "",
    "youtube.com/channel/*": "",
    "quora.com/profile/*": "",
    "t.me/*": "",
    "t.me/s/*": "t.me/*",
    "pastebin.com/*": "",
    "pastebin.com/raw/*": "pastebin.com/*",
    "pastebin.com/u/*": "",
    "sites.google.com/*": "",
    "sites.google.com/view/*": "",
    "sites.google.com/a/*": "",
    "docs.google.com/*/d/*": "",
    "docs.google.com/*/d/e/*": "",
    "drive.google.com/file/d/*": "",
    "drive.google.com/drive/folders/*": "",
    "scribd.com/document/*": "",
    "slideshare.net/*": "",
    "academia.edu/*": "",
    "researchgate.net/profile/*": "",
    "stackoverflow.com/users/*": "",
    "archive.org/details/*": "",
    "archive.org/download/*": "archive.org/details/*",
    "s3.amazonaws.com/*": "*.s3.amazonaws.com",
    "storage.googleapis.com/*": "",
    "firebasestorage.googleapis.com/v0/b/*": "",
    "cdn.jsdelivr.net/gh/*": "github.com/*",
    "cdn.jsdelivr.net/npm/*": "npmjs.com/package/*",
    "unpkg.com/*": "npmjs.com/package/*",
    "ipfs.io/ipfs/*": "",
    "dropbox.com/s/*": "",
    "dropbox.com/scl/fi/*": "",
    "substack.com/*": "",
    "groups.google.com/g/*": "",
    "colab.research.google.com/drive/*": "",
    "blog.naver.com/*": "",
    "blog.csdn.net/*": "",
    "note.com/*": "",
    "gitee.com/*": "",
    "zhihu.com/people/*": "",
    "rentry.co/*": "",
    "bit.ly/*": "",
    "t.co/*": "",
    "tinyurl.com/*": "",
}
"""From a host and the beginning of a path, where each `*` is one name, to what this is called: "" for as it stands.

Of several that fit, the longest counts. `*.host` is a user who has a host of their own.
"""

PLAIN = frozenset(
    {
        *("youtube.com/watch", "youtube.com/shorts", "youtube.com/playlist", "youtube.com/embed", "youtube.com/live"),
        *(
            "instagram.com/p",
            "instagram.com/reel",
            "facebook.com/story.php",
            "facebook.com/photo",
            "facebook.com/watch",
        ),
        *("facebook.com/photo.php", "facebook.com/permalink.php", "facebook.com/reel", "facebook.com/share"),
        *("x.com/i", "medium.com/p", "medium.com/m", "github.com/search", "github.com/topics", "tiktok.com/t"),
    }
)
"""What looks like a user and is none: the user does not stand in the address."""

SHARED = frozenset(pattern.partition("/")[0].removeprefix("*.") for pattern in USERS)
"""The hosts of the table: where an address there names no user, anybody may have written it."""

CASED = frozenset(
    "youtube.com docs.google.com drive.google.com pastebin.com bit.ly t.co ipfs.io dropbox.com".split()  # noqa: SIM905
)
"""Hosts where two names differ that differ in case; elsewhere names are lower-cased."""

ARCHIVES: dict[str, int] = {
    "web.archive.org/web": 1,
    "google.com/amp/s": 0,
    "google.com/amp": 0,
    "archive.ph": 0,
    "archive.is": 0,
    "archive.today": 0,
    "r.jina.ai": 0,
    "12ft.io": 0,
}
"""Hosts that show pages of others: the address inside begins so many segments behind these."""
