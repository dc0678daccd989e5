package confine

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/workspace/sandbox"
)

// Flags make a sandbox.
type Flags struct {
	mechanism   cli.Choice
	network     cli.Choice
	limits      []string
	read, write []string

	parsed sandbox.Limits
}

// Define adds the flags to a command. In a sandbox without forwards, loopback reaches nothing of the machine.
func (c *Flags) Define(cmd *cobra.Command) {
	f := cmd.Flags()
	c.mechanism.Value = "off"
	c.mechanism.Among(
		cmd, "sandbox", "what makes a sandbox; the flags below imply auto",
		"off", "auto", string(sandbox.Bubblewrap), string(sandbox.Namespaces),
	)
	c.network.Value = string(sandbox.NetHost)
	c.network.Among(
		cmd, "net", "the network", string(sandbox.NetHost), string(sandbox.NetLoopback), string(sandbox.NetOff),
	)
	f.StringSliceVar(
		&c.limits, "limit", nil,
		"a `limit`: memory=2G, processes=200, cpus=1.5, cpu-time=10m, file-size=1G or time=1h; may be repeated",
	)
	f.StringArrayVar(&c.read, "read", nil, "a further `path` that the command may read; may be repeated")
	f.StringArrayVar(&c.write, "write", nil, "a further `path` that the command may write; may be repeated")
}

// Check reads the flags. asked reports whether there is to be a sandbox.
func (c *Flags) Check(cmd *cobra.Command) (asked bool, err error) {
	for _, flag := range []string{"net", "limit", "read", "write"} {
		if !cmd.Flags().Changed(flag) {
			continue
		}
		if c.mechanism.Value == "off" {
			if cmd.Flags().Changed("sandbox") {
				return false, cli.Usagef("--%s needs a sandbox, and --sandbox is off", flag)
			}
			c.mechanism.Value = "auto"
		}
	}
	if c.parsed, err = parseLimits(c.limits); err != nil {
		return false, err
	}
	for _, list := range [][]string{c.read, c.write} {
		for i := range list {
			if list[i], err = filepath.Abs(list[i]); err != nil {
				return false, err
			}
		}
	}
	return c.mechanism.Value != "off", nil
}

func parseLimits(list []string) (l sandbox.Limits, err error) {
	for _, one := range list {
		name, value, _ := strings.Cut(one, "=")
		switch name {
		case "memory":
			l.Memory, err = parseSize(value)
		case "file-size":
			l.FileSize, err = parseSize(value)
		case "processes":
			l.Processes, err = strconv.Atoi(value)
		case "cpus":
			l.CPUs, err = strconv.ParseFloat(value, 64)
		case "cpu-time":
			l.CPUTime, err = time.ParseDuration(value)
		case "time":
			l.Time, err = time.ParseDuration(value)
		default:
			return l, cli.Usagef(
				"--limit %s: want memory, processes, cpus, cpu-time, file-size or time, and its value", cli.Clean(one),
			)
		}
		// The negation refuses what is no number, too.
		if err != nil || strings.HasPrefix(value, "-") || !(l.CPUs >= 0 && l.CPUs < 1e6) {
			return l, cli.Usagef("--limit %s: the value cannot be read", cli.Clean(one))
		}
	}
	return l, nil
}

// parseSize reads bytes with an optional K, M, G or T, in steps of 1024.
func parseSize(text string) (int64, error) {
	number, shift := text, 0
	if i := strings.IndexAny(text, "KMGT"); i >= 0 && i == len(text)-1 {
		number, shift = text[:i], 10*(1+strings.Index("KMGT", text[i:]))
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err == nil && n<<shift>>shift != n {
		err = strconv.ErrRange
	}
	return n << shift, err
}

// Into writes what the flags ask into the configuration of a sandbox.
func (c *Flags) Into(cfg *sandbox.Config) {
	cfg.Write, cfg.Read = slices.Concat(cfg.Write, c.write), slices.Concat(cfg.Read, c.read)
	cfg.Net, cfg.Limits = c.Net(), c.parsed
	if c.mechanism.Value != "auto" {
		cfg.Mechanism = sandbox.Mechanism(c.mechanism.Value)
	}
}

// Net is the network that was asked.
func (c *Flags) Net() sandbox.Net { return sandbox.Net(c.network.Value) }

// Reached names the limits that a command has reached, each with its flag. code is the command's exit code.
func (c *Flags) Reached(s *sandbox.Sandbox, code int) (list []string) {
	for _, r := range s.Reached(code) {
		flag := r.Subject
		for _, l := range c.limits { // the last one counts
			if strings.HasPrefix(l, r.Subject+"=") {
				flag = l
			}
		}
		list = append(list, fmt.Sprintf("--limit %s was reached, and %s", flag, r.Effect))
	}
	return list
}

// Describe is one line about what a sandbox enforces.
func Describe(s *sandbox.Sandbox, network sandbox.Net) string {
	text := fmt.Sprintf("%s, network %s", s.Mechanism(), network)
	for _, e := range s.Enforced() {
		text += fmt.Sprintf("; %s for %s", e.Subject, e.By)
	}
	return text
}
