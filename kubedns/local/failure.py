"""What keeps the local add-on from running."""


class StartError(Exception):
    """The add-on can't run or went down; the text says why and what to do."""
