package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroup is a group of processes with limits, in a delegated part of the cgroup v2 tree.
type cgroup struct{ dir string }

// cgroupTree is where the tree is mounted, and this process in it.
type cgroupTree struct{ mount, own string }

func findCgroups() (t cgroupTree) {
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return t
	}
	defer mounts.Close()
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		if fields := strings.Fields(before); len(fields) > 4 && strings.HasPrefix(after, "cgroup2 ") {
			t.mount = fields[4]
		}
	}
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			t.own = path
		}
	}
	return t
}

// controllers are those that limits need, with the files and values that set them.
func controllers(l Limits) (names []string, values [][2]string) {
	if l.Memory > 0 {
		names = append(names, "memory")
		values = append(values, [2]string{"memory.max", strconv.FormatInt(l.Memory, 10)})
	}
	if l.Processes > 0 {
		names = append(names, "pids")
		values = append(values, [2]string{"pids.max", strconv.Itoa(l.Processes)})
	}
	if l.CPUs > 0 {
		const period = 100_000 // microseconds
		names = append(names, "cpu")
		values = append(values, [2]string{"cpu.max", fmt.Sprintf("%d %d", int(l.CPUs*period), period)})
	}
	return names, values
}

// make makes a group with limits: beside this process's own, or below it. The error is the reason why there is none.
func (t cgroupTree) make(l Limits) (*cgroup, error) {
	if t.mount == "" || t.own == "" {
		return nil, errors.New("cgroup v2 is not mounted")
	}
	names, values := controllers(l)
	own := filepath.Join(t.mount, t.own)
	candidates := []string{own}
	if t.own != "/" {
		candidates = []string{filepath.Dir(own), own}
	}
	var reason error
	for _, parent := range candidates {
		text, err := os.ReadFile(filepath.Join(parent, "cgroup.subtree_control"))
		if err != nil {
			reason = err
			continue
		}
		have := strings.Fields(string(text))
		missing := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(have, n) })
		if len(missing) > 0 {
			reason = fmt.Errorf("%s does not delegate %s", parent, strings.Join(missing, ", "))
			continue
		}
		if reason = unix.Access(filepath.Join(parent, "cgroup.procs"), unix.W_OK); reason != nil {
			continue
		}
		dir, err := os.MkdirTemp(parent, "interlock-sandbox-")
		if err != nil {
			reason = err
			continue
		}
		g := &cgroup{dir}
		for _, v := range values {
			if reason = os.WriteFile(filepath.Join(dir, v[0]), []byte(v[1]), 0o644); reason != nil {
				break
			}
		}
		if reason == nil {
			return g, nil
		}
		g.remove()
	}
	return nil, reason
}

// take moves a process into the group.
func (g *cgroup) take(pid int) error {
	return os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
}

// reached lists the limits that made the kernel end a process, or refuse one.
func (g *cgroup) reached() (list []Reached) {
	if g.counts("memory.events", "oom_kill") {
		list = append(list, Reached{"memory", "a process was killed"})
	}
	if g.counts("pids.events", "max") {
		list = append(list, Reached{"processes", "a process could not be started"})
	}
	return list
}

// counts reports whether the kernel has counted an event.
func (g *cgroup) counts(file, event string) bool {
	text, _ := os.ReadFile(filepath.Join(g.dir, file))
	for line := range strings.Lines(string(text)) {
		if count, ok := strings.CutPrefix(strings.TrimSpace(line), event+" "); ok {
			return count != "0"
		}
	}
	return false
}

// remove ends what is left in the group, and removes it.
func (g *cgroup) remove() {
	_ = os.WriteFile(filepath.Join(g.dir, "cgroup.kill"), []byte("1"), 0o644)
	_ = os.Remove(g.dir)
}
