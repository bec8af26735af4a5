"""Releases with frozen noise, kept as files: a change of the code that should change no byte can show that it did not."""
