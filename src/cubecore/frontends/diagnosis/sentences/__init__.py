"""One sentence for each kind of finding, in the words of the source."""
