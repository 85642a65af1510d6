"""Reports of test runs: JUnit files, the baseline they are compared with, and how a runner is asked for one."""
