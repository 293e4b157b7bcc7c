"""What verbs share: options, reading of text, the way from a command line to an exit status."""
