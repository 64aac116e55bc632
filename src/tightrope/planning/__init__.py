"""Planning when the model, or a set that it lies in, is known: no learning in here."""
