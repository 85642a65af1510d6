"""The models that judge and reflect: each behind the same two roles."""
