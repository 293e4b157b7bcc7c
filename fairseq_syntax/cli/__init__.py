"""The program `fairseq-syntax`; its verbs are in `tools`."""
