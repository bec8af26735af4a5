"""Private models of one column given others: what fills a gap may cost privacy too, so the model is noisy first."""
