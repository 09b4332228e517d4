"""Headers that are written from declarations: constructors, calls of families, records."""
