"""How hypotheses are looked for and what is known of them: a prior over lengths, words behind unknown words."""
