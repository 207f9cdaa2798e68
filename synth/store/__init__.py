"""All that was asked, replied and verified, append-only in SQLite; a kill at any moment loses and repeats nothing."""
