"""The sizes that were tuned for speed on GPUs; none of them changes a result beyond rounding.

Each must be a power of two.
"""

# Passes: elements and warps of a tile. Enough loads in flight per thread, few enough for registers.
TILE = 4096
WARPS = 8
# Passes: rows of a tile that lie side by side in memory. Whole memory transactions in every type.
ADJACENT_ROWS = 32

# Merging: elements of a tile. Small, so that small tables still make many programs.
MERGE_TILE = 2048
# Merging: parts of a tile, and columns, at most.
MOST_PARTS = 512
MOST_COLUMNS = 64

# Tables: channels, and rows of partial sums, that a program has in registers at a time.
MOST_CHANNELS = 1024
