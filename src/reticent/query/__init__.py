"""What is asked, as plain values. A query knows which sums and tables it needs, and how to say itself."""
