package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeTree is a directory in the shape of a cgroup tree: the files are those of the kernel, without its effects.
func fakeTree(t *testing.T, own string, delegated map[string]string) cgroupTree {
	t.Helper()
	tree := cgroupTree{mount: t.TempDir(), own: own}
	for dir, controllers := range delegated {
		dir = filepath.Join(tree.mount, dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"cgroup.subtree_control": controllers, "cgroup.procs": ""} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return tree
}

// A group is made beside the caller's own, where all controllers that the limits need are delegated.
func TestCgroup(t *testing.T) {
	limits := Limits{Memory: 64 << 20, Processes: 10, CPUs: 1.5}
	beside := fakeTree(t, "/user/app", map[string]string{"/user": "cpu memory pids", "/user/app": ""})
	g, err := beside.make(limits)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(g.dir) != filepath.Join(beside.mount, "user") {
		t.Errorf("the group is %s, want it below /user", g.dir)
	}
	if err := g.take(123); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"memory.max": "67108864", "pids.max": "10", "cpu.max": "150000 100000", "cgroup.procs": "123",
	} {
		if text, err := os.ReadFile(filepath.Join(g.dir, name)); err != nil || string(text) != want {
			t.Errorf("%s has %q, %v, want %q", name, text, err, want)
		}
	}
	for _, events := range [][3]string{
		{"", "", ""},
		{"low 0\noom 1\noom_kill 0\n", "max 0\n", ""},
		{"low 0\noom 1\noom_kill 1\n", "max 0\n", "memory"},
		{"oom_kill 0\n", "max 12\n", "processes"},
		{"oom_kill 3\n", "max 1\n", "memory processes"},
	} {
		for i, name := range []string{"memory.events", "pids.events"} {
			if err := os.WriteFile(filepath.Join(g.dir, name), []byte(events[i]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, r := range g.reached() {
			got = append(got, r.Subject)
		}
		if text := strings.Join(got, " "); text != events[2] {
			t.Errorf("after %q reached are %q", events, text)
		}
	}

	below := fakeTree(t, "/own", map[string]string{"/": "memory", "/own": "memory pids cpu"})
	if g, err = below.make(limits); err != nil || filepath.Dir(g.dir) != filepath.Join(below.mount, "own") {
		t.Errorf("%v, %v, want a group below its own", g, err)
	}
	for _, tree := range []cgroupTree{
		{}, fakeTree(t, "/own", map[string]string{"/": "hugetlb", "/own": ""}), fakeTree(t, "/absent", nil),
	} {
		if g, err := tree.make(limits); err == nil {
			t.Errorf("%+v: made %s", tree, g.dir)
		}
	}
}

// What no cgroup limits is refused, or limited for each process, and said.
func TestLimitWithoutCgroup(t *testing.T) {
	s := &Sandbox{spec: spec{Limits: Limits{CPUs: 1}}}
	if err := s.limit(cgroupTree{}); err == nil || !strings.Contains(err.Error(), "processors cannot be limited") {
		t.Errorf("cpus: %v, want it refused", err)
	}
	s = &Sandbox{spec: spec{Limits: Limits{Memory: MinMemory, Processes: 5}}}
	if err := s.limit(cgroupTree{}); err != nil {
		t.Fatal(err)
	}
	for _, e := range s.Enforced() {
		if strings.Contains(e.By, "cgroup") {
			t.Errorf("%s by %s, without a cgroup", e.Subject, e.By)
		}
	}
}
