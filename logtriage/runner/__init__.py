"""Launches servers and looks at their machine: the one part that starts processes, opens sockets and waits."""
