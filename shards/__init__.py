"""The contract: schema, Parquet shards, manifest, ledger, DuckDB views. Depends on no other room."""
