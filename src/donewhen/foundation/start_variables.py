"""Which variables of the environment may come into donewhen's own process.

What may come in is named here. Everything else is kept as data: commands get it if the settings name it, but no library
in this process sees it. Imports nothing, because it runs before anything else.
"""

KEPT_AS_DATA = "DONEWHEN_CALLER_"
"""The prefix with which all other variables are handed over, so that nothing interprets them."""

_NAMES = frozenset(
    {
        # the person, the machine and the terminal
        "HOME", "USER", "LOGNAME", "SHELL", "PATH", "PWD", "TMPDIR", "TEMP", "TMP", "LANG", "LANGUAGE", "TZ",
        "TERM", "COLORTERM", "TERM_PROGRAM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR",
        "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE",
        # opening a page in the browser, and the keys of a person
        "BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK",
        # continuous integration
        "CI", "GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GITLAB_CI", "BUILDKITE", "CIRCLECI", "JENKINS_URL", "TF_BUILD",
        "TEAMCITY_VERSION",
        # agents
        "AI_AGENT", "CLAUDECODE", "COPILOT_CLI", "CURSOR_AGENT", "GEMINI_CLI",
        # the network, and models
        "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS",
        "RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_DEDUP_LOGS_SKIP_REGEX",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "RAY_NUM_REDIS_GET_RETRIES", "RAY_TMPDIR", "RAY_USAGE_STATS_ENABLED",
    }
)  # fmt: skip
_PREFIXES = ("LC_", "XDG_", "DONEWHEN_", "OPENAI_", "ANTHROPIC_", "CLAUDE_", "CODEX_", "GITHUB_", "RUNNER_")
_LIBRARIES = "LD_LIBRARY_PATH"
# What glibc's loader ignores in programs with more rights than their caller, because it changes them before their first
# line (ld.so(8), "secure-execution mode"), and the same of macOS.
_BEFORE_THE_START = ("LD_", "DYLD_", "MALLOC_")
_BEFORE_THE_START_NAMES = frozenset(
    {
        "GCONV_PATH", "GETCONF_DIR", "GLIBC_TUNABLES", "HOSTALIASES", "LOCALDOMAIN", "LOCPATH", "MUSL_LOCPATH",
        "NIS_PATH", "NLSPATH", "RESOLV_HOST_CONF", "RES_OPTIONS", "TZDIR",
    }
)  # fmt: skip


def may_come_in(name: str) -> bool:
    """Whether donewhen's own process may have a variable with this name."""
    return name in _NAMES or (name.startswith(_PREFIXES) and not name.startswith(KEPT_AS_DATA))


def start_environment(variables: dict[str, str], own_libraries: str) -> dict[str, str]:
    """The environment to start with: what may come in, and everything else under names that nothing interprets.

    ``own_libraries`` is the folder of the interpreter's libraries. Some interpreters need it to start at all; it stays
    in ``LD_LIBRARY_PATH`` if it is there, as the only one.
    """
    kept = {name if may_come_in(name) else f"{KEPT_AS_DATA}{name}": value for name, value in variables.items() if name}
    if own_libraries in variables.get(_LIBRARIES, "").split(":"):
        kept[_LIBRARIES] = own_libraries
    return kept


def acted_before_start(variables: dict[str, str], own_libraries: str) -> bool:
    """Whether a variable that may not come in can have changed this process before its first line."""
    return any(
        (name.startswith(_BEFORE_THE_START) or name in _BEFORE_THE_START_NAMES)
        and (name, value) != (_LIBRARIES, own_libraries)
        for name, value in variables.items()
    )


def caller_name(name: str) -> str:
    """The name that a variable had before :func:`start_environment`."""
    return name.removeprefix(KEPT_AS_DATA)
