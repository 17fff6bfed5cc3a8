# The compiled loops of longest paths; longest_path.py holds their Python twins. Columns are int64.

from ..arrays import IntArray

def relax(head: IntArray, tail: IntArray, length: IntArray, value: IntArray) -> None: ...
def walk(
    end: int, join: IntArray, edge: IntArray, tail: IntArray, crossings: IntArray, ends: IntArray
) -> int: ...
