"""One page about a folder of results: `fairseq-syntax report`.

page.py puts the sections together, markup.py makes HTML of text, tables and figures, sentences.py finds and shows those
in which systems differ most, looks.py what models attend to, curves.py what changes over updates, and over the quality
of parses.
"""
