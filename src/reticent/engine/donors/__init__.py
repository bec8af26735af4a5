"""Match donors to recipients: records, places on a circle, and who gives to whom."""
