"""Public facts about a survey: its columns, their domains, and who is protected. No row is read here."""

from reticent.schema.codebook import read_schema
from reticent.schema.columns import Column, Identifier, Levels, Number
from reticent.schema.schema import Schema

__all__ = ["Column", "Identifier", "Levels", "Number", "Schema", "read_schema"]
