"""The program, `fairseq-syntax VERB`: a module a verb, and what verbs share. `preprocess/*.py` call three of them."""
