package seeded

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// Report is the result of a whole run.
type Report struct {
	Machine string   `json:"machine"`
	Go      string   `json:"go"`
	Commit  string   `json:"commit"` // of the first result; with "+" when the tree was changed since
	Limit   float64  `json:"limit_seconds"`
	Found   int      `json:"found"`
	Total   int      `json:"total"`
	Clean   []Pass   `json:"clean,omitempty"` // the finders, without a mistake
	Results []Result `json:"mistakes"`
}

// NewReport records where and on what it is made.
func NewReport(r *Runner) *Report {
	return &Report{Machine: machine(), Go: runtime.Version(), Commit: commit(r.Root), Limit: r.Limit.Seconds()}
}

// Add counts a mistake, in place of an earlier result of it.
func (p *Report) Add(x Result) {
	p.Results = slices.DeleteFunc(p.Results, func(y Result) bool { return y.Name == x.Name })
	p.Results = append(p.Results, x)
	p.count()
}

func (p *Report) count() {
	p.Total, p.Found = len(p.Results), 0
	for _, x := range p.Results {
		if x.Found {
			p.Found++
		}
	}
}

// AddPass counts a finder's run without a mistake, in place of an earlier one.
func (p *Report) AddPass(c Pass) {
	p.Clean = slices.DeleteFunc(p.Clean, func(d Pass) bool { return d.Finder == c.Finder })
	p.Clean = append(p.Clean, c)
}

// Has reports whether the mistake of the name has been tried out.
func (p *Report) Has(name string) bool {
	return slices.ContainsFunc(p.Results, func(x Result) bool { return x.Name == name && x.Error == "" })
}

// Passed reports whether the finder has passed without a mistake.
func (p *Report) Passed(finder string) bool {
	return slices.ContainsFunc(p.Clean, func(c Pass) bool { return c.Finder == finder && c.Passed })
}

// Resume takes over the results of a run that was cut short, from the file that Write wrote. Without the file it is a
// new run. Mistakes and finders that are no more are left out.
func (p *Report) Resume(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	before := Report{}
	if err := json.Unmarshal(text, &before); err != nil {
		return fmt.Errorf("seeded: %s is no record of a run: %w", path, err)
	}
	bugs, err := Bugs()
	if err != nil {
		return err
	}
	p.Commit = before.Commit
	p.Results = slices.DeleteFunc(before.Results, func(x Result) bool {
		return !slices.ContainsFunc(bugs, func(b Bug) bool { return b.Name == x.Name })
	})
	p.Clean = slices.DeleteFunc(before.Clean, func(c Pass) bool { return finderNamed(c.Finder) == nil })
	p.count()
	return nil
}

// Write writes the report into a file, whole or not at all. Without a name it writes nothing.
func (p *Report) Write(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o666); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Good reports whether at least 95 of 100 were found, and everything could be tried out.
func (p *Report) Good() bool {
	for _, x := range p.Results {
		if x.Error != "" {
			return false
		}
	}
	for _, c := range p.Clean {
		if !c.Passed {
			return false
		}
	}
	return p.Found*100 >= p.Total*95
}

// Line describes one result.
func (x *Result) Line() string {
	switch {
	case x.Error != "":
		return fmt.Sprintf("%-28s %-20s ERROR    %s", x.Name, x.File, x.Error)
	case x.ByLimit:
		return fmt.Sprintf(
			"%-28s %-20s MISSED   %6.1f s  %s (a finder exceeded its limit, which finds nothing)", x.Name, x.File, x.Seconds,
			x.Title,
		)
	case !x.Found:
		return fmt.Sprintf("%-28s %-20s MISSED   %6.1f s  %s", x.Name, x.File, x.Seconds, x.Title)
	}
	return fmt.Sprintf("%-28s %-20s %-8s %6.1f s  %s", x.Name, x.File, x.Finder, x.Seconds, x.Title)
}

// Line describes one finder without a mistake.
func (c *Pass) Line() string {
	if !c.Passed {
		return fmt.Sprintf("finder %s fails without a mistake: %s", c.Finder, c.Error)
	}
	return fmt.Sprintf("finder %s passes without a mistake, %.1f s", c.Finder, c.Seconds)
}

// Summary states how many were found.
func (p *Report) Summary() string {
	slowest := 0.0
	for _, x := range p.Results {
		if x.Found {
			slowest = max(slowest, x.Seconds)
		}
	}
	return fmt.Sprintf(
		"%d of %d mistakes found, the slowest after %.1f s; commit %s, %s, %s", p.Found, p.Total, slowest, p.Commit,
		p.Machine, p.Go,
	)
}

func machine() string {
	words := fmt.Sprintf("%s/%s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return words
	}
	defer f.Close()
	return words + model(f)
}

func model(cpuinfo io.Reader) string {
	for s := bufio.NewScanner(cpuinfo); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return ", " + strings.TrimSpace(value)
		}
	}
	return ""
}

func commit(root string) string {
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", root}, args...)...).Output()
		if err != nil {
			return "unknown"
		}
		return strings.TrimSpace(string(out))
	}
	name := git("rev-parse", "--short=12", "HEAD")
	if git("status", "--porcelain", "--untracked-files=no") != "" {
		name += "+"
	}
	return name
}
