package seeded

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Report is the result of a whole run.
type Report struct {
	Machine string   `json:"machine"`
	Go      string   `json:"go"`
	Commit  string   `json:"commit"` // with "+" when the tree was changed since
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

// Add counts a mistake.
func (p *Report) Add(x Result) {
	p.Results = append(p.Results, x)
	p.Total++
	if x.Found {
		p.Found++
	}
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
