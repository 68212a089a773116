"""The table of the commands: their groups in the help, the modules that run them, their summaries.

A command is one line: its name, the module in ``mqis.cli``, and what it does in at most 60
characters. The module has a function of the command's name (with ``_`` behind it where Python has
that word already), or ``app`` with commands of its own.
"""

from __future__ import annotations

from typing import Final, NamedTuple

COMMAND_GROUPS: Final = {
    "Run an enterprise": {
        "init": ("init", "Write a configuration in which every key is explained"),
        "tour": ("tour.command", "Show a demonstration enterprise and check it"),
        "up": ("up", "Start an enterprise: every server is a process"),
        "down": ("control", "Stop an enterprise in order"),
        "status": ("status", "Show servers, partitions and lags, live on a terminal"),
        "show": ("show", "Show everything about one server"),
        "where": ("control", "Print the address of a server, for --server"),
        "start": ("control", "Start a server that was stopped or that failed"),
        "stop": ("control", "Stop a server gracefully"),
        "kill": ("control", "Kill a server, as a power failure would"),
        "console": ("console", "Show an enterprise in the browser"),
    },
    "Run one server": {
        "serve": ("serve", "Serve a directory over RPC"),
        "join": ("join", "Make this computer a server of an existing enterprise"),
        "account": ("account", "Add, list and remove the accounts that may log on"),
        "key": ("key", "List and rotate the signing keys of servers"),
        "sessions": ("sessions", "List who is connected to a server, and end sessions"),
    },
    "Read the directory": {
        "get": ("query", "Show one object"),
        "lookup": ("query", "List the objects that meet conditions"),
        "servers": ("servers", "List the directory servers of every site"),
        "discover": ("discover", "Find directory servers by broadcast"),
    },
    "Change the directory": {
        "create": ("change", "Create an object"),
        "set": ("change", "Change properties of an object"),
        "delete": ("delete", "Delete an object and what hangs on it"),
        "undelete": ("undelete", "Bring back what was deleted"),
        "security": ("security", "Show or change the permissions of an object"),
    },
    "Follow messages": {
        "route": ("route", "Show the route of a message, and the reasons for it"),
        "routes": ("routes", "Show the routes of all sites, or who is stuck"),
        "map": ("map", "Draw the enterprise: sites, links, gates"),
        "send": ("send", "Send a message and compare its path with the route"),
    },
    "Keep and move data": {
        "export": ("transfer", "Write a directory as JSON Lines or LDIF"),
        "import": ("transfer", "Read an export, LDIF or Active Directory into a store"),
        "publish": ("publish", "Put a store into an Active Directory: plan, then write"),
        "mirror": ("mirror", "Keep a store equal to an Active Directory"),
        "diff": ("diff", "Compare exports, stores, servers or moments"),
        "backup": ("backup", "Back up one server while it runs"),
        "restore": ("backup", "Restore a stopped server from a backup"),
        "store": ("store", "Check a store for damage"),
    },
    "Find and repair faults": {
        "doctor": ("doctor", "Look for problems, and say what to do about them"),
        "check": ("check", "Look for faults in a directory's contents"),
        "estate": ("estate", "Look for faults of an estate in Active Directory"),
        "logs": ("logs", "Show the logs of servers, merged by time"),
        "trace": ("trace", "Follow one change from the call to the last replica"),
        "journal": ("journal", "Follow, show and verify the journal of a server"),
        "promote": ("promote", "Replace a lost controller by its backup"),
    },
    "Analyse protocols": {
        "capture": ("capture", "Explain the traffic in a capture"),
        "decode": ("decode", "Explain bytes, and show where they stop being valid"),
        "oletx": ("oletx", "Run OleTx partners and connect them"),
        "sim": ("sim", "Simulate enterprises with faults, and check them"),
    },
    "Analyse a whole estate": {
        "pipeline": ("pipeline", "Audit, rebuild and report from journals, on Spark"),
        "generate": ("generate", "Write journals and exports with planted faults"),
    },
    "Help": {
        "deploy": ("deploy", "Print files for systemd, containers, Prometheus, Grafana"),
        "completion": ("completion", "Print the completion script of bash, zsh or fish"),
        "man": ("man", "Write the manual pages"),
    },
}


class CommandEntry(NamedTuple):
    """One line of the table."""

    name: str
    module: str
    summary: str

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names that the command may have in its module, the first one that exists counts."""
        return self.name.replace("-", "_"), f"{self.name}_", "app"


#: Every command by its name, in the order of the help.
COMMANDS: Final = {
    name: CommandEntry(name, f"mqis.cli.{module}", summary)
    for group in COMMAND_GROUPS.values()
    for name, (module, summary) in group.items()
}
