"""Looking at outputs and into models: scores, tables, pictures."""
