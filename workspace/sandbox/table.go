package sandbox

import "strings"

// Level is how far a mechanism enforces something.
type Level string

// The levels.
const (
	Yes  Level = "yes"
	No   Level = "no"
	Part Level = "partly"
)

// Row is one line of Table: a subject, and how far each mechanism enforces it.
type Row struct {
	Subject                string
	Bubblewrap, Namespaces Level
	// Without is a command without a sandbox: on macOS and Windows, or in a container that forbids namespaces.
	Without Level
	// Note explains Part and No.
	Note string
}

// Table lists what is enforced and what is not, by mechanism.
var Table = []Row{
	{"only the own tree and private directories are writable", Yes, Yes, No, ""},
	{"other workspaces, home directories, /var, /srv and /mnt are invisible", Yes, Yes, No, "unless listed as readable"},
	{"files of /etc that are not readable for all are hidden, from root too", Yes, Yes, No, ""},
	{"unreadable files of /usr and /opt are hidden", Part, Part, No, "file permissions count; root can read them"},
	{"sockets in /run and /tmp (containers, keys, desktop) are out of reach", Yes, Yes, No, ""},
	{"processes outside are invisible and cannot be signalled or traced", Yes, Yes, No, ""},
	{"setuid programs and file capabilities have no effect", Yes, Yes, No, ""},
	{"no capability, mount, kernel key, new namespace or terminal injection", Yes, Yes, No, "amd64 and arm64"},
	{"network off: no address outside", Yes, Yes, No, ""},
	{"network loopback: forwarded addresses only", Yes, Yes, No, "what a connection carries is not filtered"},
	{"network host: abstract sockets and services of the machine", No, No, No, "use off or loopback"},
	{"wall time", Yes, Yes, No, ""},
	{"all processes end with the command and with the caller", Yes, Yes, Part, "without: the process group"},
	{"size of a file, processor time of a process", Yes, Yes, No, ""},
	{"memory", Part, Part, No, "together with a delegated cgroup (v2); else for each process"},
	{"number of processes, ordinary user", Yes, Yes, No, ""},
	{"number of processes, root", Part, Yes, No, "bubblewrap: with a cgroup; namespaces: else at least 301, Linux 6.14"},
	{"processors", Part, Part, No, "with a delegated cgroup (v2); else refused"},
	{"disk space and I/O", No, No, No, "private directories: 1 GiB each"},
	{"secrets in the environment", No, No, No, "the caller chooses the variables"},
	{"a flaw of the kernel", No, No, No, "use a virtual machine"},
}

// Markdown returns Table as a table of a page.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| what | bubblewrap | namespaces | no sandbox | note |\n|---|---|---|---|---|\n")
	for _, r := range Table {
		b.WriteString("| " + strings.Join([]string{
			r.Subject, string(r.Bubblewrap), string(r.Namespaces), string(r.Without), r.Note,
		}, " | ") + " |\n")
	}
	return b.String()
}
