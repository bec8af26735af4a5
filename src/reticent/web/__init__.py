"""The curator's desk: a local web page on the same plans, ledger and files as the command line (W01 to W18)."""
