"""The program, `fairseq-syntax VERB`: a file a verb; `program` finds them, `common` is what they share."""
