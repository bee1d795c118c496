"""The protobuf messages of GE and the conversion between them and the graph classes."""
