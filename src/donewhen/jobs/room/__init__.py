"""The clean room: the files that a check sees. Everything is as agreed, except the work in the agreed work area."""
