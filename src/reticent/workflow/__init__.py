"""What the commands and the desk do alike, from a plan file to its release, without a word printed."""
