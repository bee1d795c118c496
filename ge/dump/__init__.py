"""Stage dumps: what the graph looked like at each named point of a compile.

``settings`` reads the switches, ``dumper`` decides and numbers, ``onnx_text``, ``proto_text`` and ``readable`` print.
"""
