"""What the papercuts tools share: the manners of a command, and nothing of any paper."""
