"""Parts of HTML pages, and files for other tools."""
