"""The error that a command line shows as one sentence."""


class UsageError(Exception):
    """What the user gave cannot be used; the message says what was wrong and what to do."""
