"""From token shards to batches: the plan of what is trained when, and the loader that follows it."""
