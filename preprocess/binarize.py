"""Binarize text and trees: the same program as the command fairseq-syntax-preprocess."""

from fairseq_syntax.cli.preprocess import main

if __name__ == "__main__":
    main()
