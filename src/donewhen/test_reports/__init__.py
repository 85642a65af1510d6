"""Test reports: JUnit and other report files, and the baseline that they are compared with."""
