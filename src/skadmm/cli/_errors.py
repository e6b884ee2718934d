"""The error that a command raises to end with a message and an exit code."""


class CommandError(Exception):
    """One line for stderr, and the exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code
