"""What runs within the sandbox: the standard library and nothing of Gristmill but these modules."""
