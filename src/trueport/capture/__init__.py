"""The user's own forward, traced into a graph of regions (docs/how-it-works.md walks through it).

Rooms, lowest first; each imports from those before it only, which tests/test_imports.py holds:

    limits.py, assumptions.py      every bound, and what a trace took for granted about free sizes
    values/                        what a name may be that no value of ONNX is: one of several, None or not, a conflict
    stops/                         why and where a trace stops: the line, restarts, refusals, the user's own errors
    recording/                     operators on tensors without data, noted as nodes
    containers/                    lists, dicts, sets, generators whose content depends on the way that was taken
    python/                        builtins, methods of numbers, polyfills of the library, where something is traced
    effects/                       what code does to objects, containers and tensors around it: seen, undone, told
    joins/                         what two arms leave, made one
    loops/                         loops of traced length
    branches/                      branches, and everything else that rewritten code asks of a trace
    torch_calls.py, returned.py, trace.py   the whole of it: the modes around forward, its result, the trace
"""
