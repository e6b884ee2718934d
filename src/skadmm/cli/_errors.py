"""What a command raises to leave with a message and a code."""


class CommandError(Exception):
    """One line for stderr, and the exit code to leave with."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code
