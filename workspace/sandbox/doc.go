// Package sandbox runs a command that can write to its own tree and see little else of the machine.
//
// A sandbox is made by bubblewrap, or where that is missing by Linux namespaces of our own. Both get the same
// plan: an empty root, the system directories read-only, the paths that the caller lists, private /tmp, /run, /dev
// and home directory. What the plan does not list does not exist inside.
//
//	caller ──► start ──► [bubblewrap ──►] init, process 1 ──► exec ──► the command
//	   ▲                                   │
//	   └── control socket: listeners, errors, the process to limit, end of either side
//
// Start, init and exec are this program, called again ([Main]). Start stays the caller's child, in the caller's
// process group and terminal. Init is process 1 of the sandbox: all processes inside end with it, and it ends when
// the control socket does, so the caller's death ends the tree. Exec drops all privileges, sets limits and a filter
// of system calls, and becomes the command.
//
// A network of its own has loopback alone. The caller reaches out in place of the command: init listens on an address
// inside, passes that socket out, and the caller connects what arrives there to one fixed address outside.
//
// Invariants: a path that is not listed is never visible; a limit that was asked for and cannot be enforced is an
// error, never a silence; the command has no capability, gains none by a setuid program, and cannot reach process 1.
//
// It does not protect from a hostile kernel, and does not filter what a permitted connection carries. [Table] lists
// what each mechanism enforces.
//
// Start reading at sandbox.go, then plan_linux.go (what is visible) and init_linux.go (what runs inside).
package sandbox
