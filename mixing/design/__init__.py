"""Which runs to make next: space-filling first, then what is worth its cost, and when to stop."""
