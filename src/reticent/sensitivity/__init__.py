"""How far one respondent can move an answer."""
