"""Builds the site, English and Chinese, into site/: `python -m tools.pages.site`."""

import logging
import re
import shutil
import sys
from pathlib import Path

from mkdocs.commands.build import build
from mkdocs.config import load_config
from tools.pages.site.missing_page import based

ROOT = Path(__file__).resolve().parents[3]
SITE = ROOT / "site"
_LINK = re.compile(r'href="(?![a-z]+:|#|data:)([^"#?]+)(?:#([^"]+))?"')


def main() -> int:
    """Build both languages; return 1 if a link between them leads nowhere.

    A warning of MkDocs ends the build.
    """
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    shutil.rmtree(SITE, ignore_errors=True)
    for name in ("mkdocs.yml", "mkdocs.zh.yml"):
        config = load_config(str(ROOT / name))
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
        config.plugins.on_shutdown()
    for page in SITE / "404.html", SITE / "zh" / "404.html":
        page.write_text(based(page.read_text("utf-8")), "utf-8")
    for line in (broken := broken_links()):
        print(line, file=sys.stderr)
    print("site/ is built; python -m http.server --directory site shows it")
    return 1 if broken else 0


def broken_links() -> list[str]:
    """Return the links of the Chinese pages, and those to them, that lead nowhere."""
    pages = [*(SITE / "zh").rglob("*.html"), SITE / "index.html", SITE / "404.html"]
    found = []
    for page in pages:
        for path, name in _LINK.findall(page.read_text("utf-8")):
            target = (page.parent / path).resolve()
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or (name and f'id="{name}"' not in target.read_text("utf-8")):
                found.append(f"{page.relative_to(SITE)}: {path}#{name} leads nowhere")
    return found


if __name__ == "__main__":
    sys.exit(main())
