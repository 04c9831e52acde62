"""The tests, and what they share: a regular package, since some installed one has this name."""
