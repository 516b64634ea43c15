"""Tables in files: one reader for all formats, and writers for ARFF and Parquet.

`read_table` opens a file (source), parses it by the reader of its format (text, parquet, arff, mat,
svmlight), and chooses the class variables (targets); `read_chunks` reads a table piece by piece. A damaged
file is a `DataFormatError` that names the file and the line. Writers replace a file only when the new one is
complete.
"""

from tuplet.io.tables.arff_writer import write_arff
from tuplet.io.tables.chunks import Chunk, read_chunks
from tuplet.io.tables.parquet import write_parquet
from tuplet.io.tables.read import read_table
from tuplet.io.tables.svmlight import read_svmlight

__all__ = ["Chunk", "read_chunks", "read_svmlight", "read_table", "write_arff", "write_parquet"]
