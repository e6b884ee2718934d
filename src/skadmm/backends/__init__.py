"""Where the rows live: in memory, in a folder of files, or on the workers of a Dask cluster.

Whatever the home, it answers the same few questions (``tasks.py``), block by block.
"""

from skadmm.backends.files import BlocksError, FileBlocks, as_folder, is_folder
from skadmm.backends.kinds import is_dask
from skadmm.backends.tables import as_rows

__all__ = ["BlocksError", "FileBlocks", "as_folder", "as_rows", "is_dask", "is_folder"]
