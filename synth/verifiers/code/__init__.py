"""Programs against tests, in a sandbox without network or secrets; the verdict is computed outside it."""
