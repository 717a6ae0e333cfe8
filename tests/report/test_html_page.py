"""The frame of every page: only its own style and script may run."""

from base64 import b64encode
from hashlib import sha256

from unpoison.report.html_page import html_page, resource


def digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def test_a_page_allows_its_own_style_and_no_script():
    page = html_page("a title", "<p>x</p>", style="p { color: red }")
    assert f"default-src 'none'; style-src {digest('p { color: red }')}; base-uri 'none'; form-action 'none'" in page
    assert "<script" not in page
    assert page.endswith("<body>\n<p>x</p>\n</body>\n</html>\n")


def test_a_page_with_a_script_allows_that_one():
    page = html_page("t", "x", style="", script="go()", data="<data></data>", attributes=' class="report"')
    assert f"script-src {digest('go()')};" in page
    assert '<body class="report">\nx\n<data></data>\n<script>go()</script>\n</body>' in page


def test_several_files_are_one_text():
    assert resource("page.css", "report.css") == resource("page.css") + resource("report.css")
