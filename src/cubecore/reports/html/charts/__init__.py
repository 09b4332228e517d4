"""Charts of the pages, as SVG or as the data that a page draws."""
