"""The protocol without I/O: parties are pure handlers of bytes, the aggregator emits exchanges and takes replies.

Nothing here opens a socket, reads a clock or draws randomness: what it needs of that kind is handed in.
"""
