package bench

import (
	"bufio"
	"os"
	"runtime"
	"strings"
)

// Machine describes where figures come from. Figures of different machines cannot be compared.
type Machine struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	System    string `json:"system"`
	Go        string `json:"go"`
	Commit    string `json:"commit"` // from which this program was built
}

// ThisMachine describes the machine that runs this program, which was built from a commit.
func ThisMachine(commit string) Machine {
	m := Machine{
		Processor: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(),
		System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Commit: commit,
	}
	if m.Processor == "" {
		m.Processor = "unknown processor"
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System += " " + strings.TrimSpace(string(release))
	}
	return m
}

// field is the first value of a name in a file of "name : value" lines; "" if there is
// none.
func field(file, name string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if n, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(n) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
