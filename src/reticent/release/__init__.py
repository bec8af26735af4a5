"""Plan composes, Curator runs, Release is the only thing that leaves."""
