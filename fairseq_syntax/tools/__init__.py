"""The verbs of the command line, one per file: its options, a documented function that does the work, and its output.

The functions take plain arguments and return tables, figures or dataclasses, so that `from fairseq_syntax.tools.whatif
import whatif` works in a notebook. A new verb needs a file with a `main = Verb(…)`, see `verb`, and a line in
`cli.program.GROUPS`. Other files are shared: `verb` has common options; `models`, `latent_trees`, `word_attention`
and `views` load and inspect models.
"""
