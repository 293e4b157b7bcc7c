"""Training of any system: BlackOut, averaging of checkpoints, a warning about the criterion, validation BLEU."""
