"""What any system can be trained with: BlackOut, updates that tasks share, BLEU of the validation set."""
