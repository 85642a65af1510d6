"""Reflection: eligible tickets, model requests, strict parsing of answers, closure, hypotheses."""
