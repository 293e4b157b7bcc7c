"""The verbs of the command line, one per file, with options, a documented function for the work, and output.

The functions take plain arguments and return tables, figures or dataclasses, so that `from fairseq_syntax.tools.whatif
import whatif` works in a notebook. A new verb needs a file with a `main = Verb(…)`, see `verb`, and a line in
`cli.program.GROUPS`. Other files are shared: `verb` has common options; `loaded_model`, `latent_trees`,
`word_attention` and `sentence_pictures` load and inspect models.
"""
