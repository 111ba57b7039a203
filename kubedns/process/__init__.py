"""The record server as a process: memory and open files.

In: limits of the host, the connections that are open.
Out: short pauses for garbage collection, bounded memory.
Owns: the garbage collector's settings.
Never: knows what the objects are.
"""
