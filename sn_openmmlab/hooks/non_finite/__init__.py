"""What `NonFiniteGuardHook` is made of: the checks, the search, the skipped step, the message."""
