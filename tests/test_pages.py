"""The pages of docs/findings/: what they tell to avoid is found, what they prefer is not, and each code has its page."""

from __future__ import annotations

import json
import pathlib
import re
import tempfile

import attrs
import pytest

from ecm_rules import EcmError
from ecm_rules.analysis.files import check_file
from ecm_rules.hosts.installing import doctor, trial
from ecm_rules.hosts.installing.install import install
from ecm_rules.lifecycle import SHAPES, check_pairs, conflicts_of, parse
from ecm_rules.lifecycle import findings_of as diagnosed
from ecm_rules.tables import layout
from ecm_rules.tables.findings import CODES, ERROR, Finding
from ecm_rules.tables.installs import load_installs
from tests.commands import examples, run, unprinted
from tests.conftest import ROOT

FOLDER = ROOT / "docs/findings"
INDEX = (FOLDER / "README.md").read_text()
# From here on a finding is about what the rows decide together, of which one mistake may well give several.
TOGETHER = "ECM600"

_PAGE = re.compile(
    r"# (?P<code>ECM\d{3}): (?P<title>[^\n]+)\n\n(?P<summary>(?!#|```).*?)\n\n"
    r"## Avoid\n\n```(?P<language>yaml|json|markdown|console)\n(?P<avoid>.*?)```\n\n"
    r"## Prefer\n\n```(?P=language)\n(?P<prefer>.*?)```\n\n"
    r"## Why\n\n(?P<why>(?!#|```).*)\n",
    re.DOTALL,
)
_FILE = re.compile(r"^# (\S+\.yaml)\n", re.MULTILINE)
_SOURCE = re.compile(r"^<!-- (\S+\.md) -->\n", re.MULTILINE)


@attrs.frozen
class Page:
    """A page's parts. `language` is the one of both examples."""

    code: str
    title: str
    summary: str
    language: str
    avoid: str
    prefer: str
    why: str


def read_page(path: pathlib.Path) -> Page:
    found = _PAGE.fullmatch(path.read_text())
    assert found, f"{path.name} is not of the form of a page"
    return Page(**found.groupdict())


PAGES = {path.stem: read_page(path) for path in sorted(FOLDER.glob("ECM*.md"))}


def keys(text: str) -> dict[str, str]:
    """The text of each key of a mapping that begins its lines with its keys."""
    parts = re.split(r"^(?=\w+:)", text, flags=re.MULTILINE)
    return {part.partition(":")[0]: part for part in parts if re.match(r"\w+:", part)}


POLICY, TABLE = (keys(block) for block in re.findall(r"```yaml\n(.*?)```", INDEX, re.DOTALL))


def complete(example: str) -> str:
    """An example with what it leaves out in front of it, as the index says."""
    if _FILE.match(example):
        return example
    own = keys(example)
    head = TABLE if own.keys() & {"fields", "signals", "steps"} else POLICY
    return "".join(text for key, text in head.items() if key not in own) + example


def findings_of(example: str) -> list[Finding]:
    """All that is found in a document when it is completed: a table, or the file that its first line names."""
    text = complete(example)
    with tempfile.TemporaryDirectory() as folder:
        project = pathlib.Path(folder)
        parts = _FILE.split(text)[1:] if _FILE.match(text) else ["table.yaml", text]
        for name, content in zip(parts[::2], parts[1::2], strict=True):
            path = project / name
            if path.parent != project:
                path.parent.mkdir()
                (project / "eidolons.yaml").write_text("context: {}\n")
            path.write_text(content)
        return check_file(str(project / parts[0]), str(project))


def losses_of(text: str) -> list[Finding]:
    """What keeps a document from being laid out."""
    try:
        layout.canonical(complete(text).encode(), "table.yaml")
    except EcmError as error:
        return list(error.findings)
    return []


def pairs_of(text: str) -> list[Finding]:
    """All that is found in a history, which names its shape."""
    told = json.loads(text)
    return check_pairs(told["messages"], SHAPES[told["shape"]])


def declared(example: str) -> list[Finding]:
    """All that is found in Markdown: one file, or the files that its lines name."""
    parts = _SOURCE.split(example)
    files = list(zip(parts[1::2], parts[2::2], strict=True)) or [("example.md", example)]
    documents = [(parse(text, name), text) for name, text in files]
    found = [finding for document, text in documents for finding in diagnosed(document, text, document.source)]
    return found + conflicts_of(document for document, _ in documents)


def project_with(file: str, text: str, folder: str) -> str:
    path = pathlib.Path(folder) / "p" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(pathlib.Path(folder) / "p")


def refused_of(settings: str) -> list[Finding]:
    """What keeps a client's settings from being edited."""
    with tempfile.TemporaryDirectory() as folder:
        return list(install(project_with(".claude/settings.json", settings, folder)).findings)


def linked(links: str) -> list[Finding]:
    """What is wrong with the links of a project."""
    with tempfile.TemporaryDirectory() as folder:
        project = pathlib.Path(project_with("shared/settings.json", "{}", folder))
        for file, target in json.loads(links).items():
            (project / file).parent.mkdir()
            (project / file).symlink_to(target)
        return list(install(str(project), ["claude-code"]).findings)


def examined(settings: str) -> list[Finding]:
    """What the doctor finds where a client is installed beside such settings."""
    with tempfile.TemporaryDirectory() as folder:
        project = project_with(".claude/settings.json", settings, folder)
        install(project)
        return list(doctor.examine(project).findings)


def answered(stdout: str) -> list[Finding]:
    """What is wrong with what a hook prints."""
    fault = trial.unfit(stdout.encode())
    tried = trial.Trial("ecm-hook pi", 1, 0, None, None, (fault,) if fault else ())
    return doctor._tried(load_installs()["pi"], tried, 300, "answer.json")


# What finds what an example shows: by the example's language, and for what checking a file does not find, by the code.
READ_BY = {"yaml": findings_of, "json": pairs_of, "markdown": declared}
FOUND_BY = {
    "ECM109": losses_of,
    "ECM901": refused_of,
    "ECM902": refused_of,
    "ECM903": linked,
    "ECM912": answered,
    "ECM913": examined,
}


def listed() -> dict[str, tuple[str, str]]:
    """Title and severity of each code in the index."""
    rows = re.findall(r"^\| \[(ECM\d{3})\]\((.+)\) \| (.+) \| (.+) \|$", INDEX, re.MULTILINE)
    assert all(target == f"{code}.md" for code, target, _, _ in rows)
    return {code: (title, severity) for code, _, title, severity in rows}


def test_every_code_has_a_page_of_its_title() -> None:
    assert {code: PAGES[code].title for code in CODES} == CODES
    assert all(page.code == code for code, page in PAGES.items())


def test_the_index_lists_every_page_in_order() -> None:
    assert [(code, title) for code, (title, _) in listed().items()] == [(p.code, p.title) for p in PAGES.values()]


def test_a_page_says_why_in_a_few_sentences() -> None:
    for page in PAGES.values():
        assert 1 <= len(re.findall(r"[.!?](?=\s|$)", page.summary)) <= 3, page.code
        assert 2 <= len(re.findall(r"[.!?](?=\s|$)", page.why)) <= 5, page.code


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_what_to_avoid_is_found_and_what_to_prefer_is_not(page: Page, tmp_path: pathlib.Path) -> None:
    if page.language == "console":
        commands_say_so(page, tmp_path)
        return
    finding = FOUND_BY.get(page.code, READ_BY[page.language])
    found = finding(page.avoid)
    severities = {finding.severity for finding in found if finding.code == page.code}
    assert severities, f"{page.code} is not among {[finding.code for finding in found]}"
    assert severities <= set(listed()[page.code][1].split(" or "))
    if page.code < TOGETHER:
        assert {finding.code for finding in found if finding.code < TOGETHER} == {page.code}
    right = finding(page.prefer)
    assert [f for f in right if f.code == page.code or f.severity == ERROR] == []


def commands_say_so(page: Page, folder: pathlib.Path) -> None:
    for example, fails in ((page.avoid, True), (page.prefer, False)):
        commands = examples(example)
        assert commands
        for command, shown in commands:
            done = run(*command.split(), cwd=folder)
            assert (done.returncode != 0, f"error {page.code}: " in done.stdout + done.stderr) == (fails, fails), (
                command
            )
            assert unprinted(shown, done.stdout + done.stderr) == []
