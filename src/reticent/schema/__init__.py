"""Public facts about a survey: its columns, their domains, and who is protected. No row is read here."""

from reticent.schema.codebook import Schema, read_schema
from reticent.schema.columns import Column, Identifier, Levels, Number

__all__ = ["Column", "Identifier", "Levels", "Number", "Schema", "read_schema"]
