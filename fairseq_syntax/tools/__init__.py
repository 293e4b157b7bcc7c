"""What the program does: a file for each verb, with its options, its work as a documented function, and its output.

The functions take plain arguments, and return tables, pictures or dataclasses: `from fairseq_syntax.tools.whatif import
whatif` works in a notebook. A new verb is a file here with a `main = Verb(…)`, see `verb`, and a line in
`cli.program.GROUPS`. Some files are not verbs: `verb` has the options that verbs share; `preparation`, `models`,
`latent_trees`, `word_attention` and `views` load models and look inside; `constituents`, `markup` and `sections` belong
to `look` and `report`.
"""
