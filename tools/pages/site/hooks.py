"""Hooks of MkDocs: generated pages, executed tutorials, inlined pictures and stated figures."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File
from pymdownx.slugs import slugify
from tools.pages.site import figures, pages
from tools.pages.site.notebooks import executed, notebook, page

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[3]
_EVIDENCE = {
    *("agreement.md", "architecture.md", "auditors.md", "cpp_names.md", "cpp_programs.md"),
    *("class_api_rules.md", "cpp_headers.md"),
    *(
        "decisions.md",
        "mechanisms.md",
        "mutations.md",
        "seeds.md",
        "tik_programs.md",
        "validation.md",
    ),
}
_PICTURE = re.compile(r"^!\[([^\]]*)\]\(([^)]+\.svg)\)$", re.MULTILINE)
_CLIMBING = re.compile(r"\]\(((?:\.\./)+)([\w/]+)\.md(#[^)]*)?\)")


_IN_NAVIGATION = {
    "rules.md": "rules",
    "instructions.md": "instructions",
    "api.md": "api",
    "class_api.md": "class_api",
}
"""Folders of generated pages that stand below their index in the navigation."""


def on_config(config: "MkDocsConfig") -> "MkDocsConfig":
    """Add the generated pages to the navigation: a page without a place in it has none at all.

    An anchor in Chinese is its heading, as on a code host.
    """
    if config.theme["language"] == "zh":
        config.mdx_configs["toc"] = {**config.mdx_configs["toc"], "slugify": slugify(case="lower")}
    else:
        config.nav = [_with_pages(entry) for entry in config.nav or ()]
    return config


def _with_pages(entry: object) -> object:
    """Return an entry of the navigation; an index of generated pages has them below itself."""
    if not isinstance(entry, dict):
        return entry
    ((title, below),) = entry.items()
    if isinstance(below, list):
        return {title: [_with_pages(each) for each in below]}
    folder = _IN_NAVIGATION.get(below)
    return entry if folder is None else {title: [below, *pages.listed(folder)]}


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add generated pages, the front page's outputs, and the notebook of every tutorial."""
    chinese = config.theme["language"] == "zh"
    for path, text in {} if chinese else pages.generated().items():
        if (old := files.get_file_from_path(path)) is not None:
            files.remove(old)
        files.append(File.generated(config, path, content=text))
    if chinese:
        style = (ROOT / "docs" / "assets" / "site.css").read_text("utf-8")
        files.append(File.generated(config, "assets/site.css", content=style))
    if (front := files.get_file_from_path("index.md")) is not None:
        book = executed((ROOT / "docs" / "index.md").read_text("utf-8"))
        files.remove(front)
        shown = page(front.content_string, book)
        files.append(File.generated(config, front.src_uri, content=shown))
    for file in [f for f in files if _is_tutorial(f.src_uri)]:
        text = file.content_string
        english = ROOT / "docs" / "tutorials" / Path(file.src_uri).name
        book = executed(english.read_text("utf-8"))
        name = file.src_uri.removesuffix(".md")
        label = "下载 notebook" if chinese else "Download the notebook"
        link = f"[{label}]({Path(name).name}.ipynb){{ .notebook }}"
        head, _, rest = page(text, book).partition("\n")
        shown = f"{head}\n\n{link}\n{rest}"
        files.remove(file)
        files.append(File.generated(config, file.src_uri, content=shown))
        files.append(File.generated(config, f"{name}.ipynb", content=notebook(text, book)))
    return files


def _is_tutorial(path: str) -> bool:
    return path.startswith("tutorials/") and path.endswith(".md") and "index" not in path


def on_page_markdown(markdown: str, page: "Page", config: "MkDocsConfig", files: "Files") -> str:
    """Put stated figures and pictures into a page."""
    if page.file.src_uri in _EVIDENCE or page.file.src_uri.startswith("decisions/"):
        page.meta["search"] = {"exclude": True}
    elif page.file.src_uri.startswith("instructions/"):
        page.meta["search"] = {"boost": _boost_of(page.file.src_uri)}
    text = figures.filled(markdown)
    if config.theme["language"] == "zh":
        depth = page.file.src_uri.count("/")
        text = _CLIMBING.sub(lambda match: _english(match, depth), text)
    folder = Path(config.docs_dir) / Path(page.file.src_uri).parent
    return _PICTURE.sub(lambda match: _inlined(folder / match[2], match[1]), text)


def _boost_of(path: str) -> float:
    """Return how much a page of an instruction counts in the search.

    DataCopy has many pages and DataCopyPad two: the search counts the rarer word more, and shows
    it to who types DataCopy. A name that others begin with therefore counts more.
    """
    titles = {page: text.partition(",")[0].split()[-1] for page, text in pages.generated().items()}
    name = titles[path]
    others = (each for each in titles.values() if each != name)
    return 3.0 if any(each.startswith(name) for each in others) else 0.6


def _english(link: re.Match[str], depth: int) -> str:
    """Return a link; one that leaves the Chinese pages leads to the built English page."""
    climbed, name, anchor = link.groups(default="")
    if climbed.count("../") <= depth:
        return link[0]
    return f"]({climbed}{name}.html{anchor})"


def _inlined(path: Path, title: str) -> str:
    """Return a picture as part of the page, so that it takes the page's colours."""
    svg = path.read_text("utf-8").replace("\n", " ").strip()
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)
    return f'<figure class="picture">{svg}</figure>'
