package workspace

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/workspace"
	"github.com/interlockdev/interlock/workspace/database"
	"github.com/interlockdev/interlock/workspace/sandbox"
)

// confinement is the flags of run that make a sandbox.
type confinement struct {
	mechanism   cli.Choice
	network     cli.Choice
	limits      []string
	read, write []string

	parsed sandbox.Limits
}

func (c *confinement) define(cmd *cobra.Command) {
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

// check reads the flags. asked reports whether there is to be a sandbox.
func (c *confinement) check(cmd *cobra.Command) (asked bool, err error) {
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

// box makes the sandbox of a workspace for a command.
func (v *visit) box(ctx context.Context, w *workspace.Workspace, argv, env []string) (*sandbox.Sandbox, error) {
	c := &v.confine
	cfg := sandbox.Config{
		Argv: argv, Env: env, Dir: filepath.Join(w.Path(), v.folder),
		Write: slices.Concat([]string{w.Path(), w.GitDir()}, w.Shared(), c.write), Read: slices.Concat(w.Borrowed(), c.read),
		Net: sandbox.Net(c.network.Value), Limits: c.parsed,
	}
	if c.mechanism.Value != "auto" {
		cfg.Mechanism = sandbox.Mechanism(c.mechanism.Value)
	}
	if lower, upper, work, err := w.Layers(ctx); err != nil {
		return nil, err
	} else if lower != "" {
		cfg.Overlays = []sandbox.Overlay{{Lower: lower, Upper: upper, Work: work, At: w.Path()}}
	}
	if v.db != nil && v.db.Clone.Engine == database.SQLite {
		cfg.Write = append(cfg.Write, filepath.Dir(v.db.Clone.Name))
	}
	if cfg.Net == sandbox.NetLoopback {
		var err error
		if cfg.Forward, err = v.forwards(); err != nil {
			return nil, err
		}
	}
	s, err := sandbox.New(cfg)
	if err == nil && !v.quiet {
		v.a.Complain("sandbox: %s", describe(s, cfg.Net))
	}
	return s, err
}

func describe(s *sandbox.Sandbox, network sandbox.Net) string {
	text := fmt.Sprintf("%s, network %s", s.Mechanism(), network)
	for _, e := range s.Enforced() {
		text += fmt.Sprintf("; %s for %s", e.Subject, e.By)
	}
	return text
}

// forwards are the addresses of the server and of the clone.
func (v *visit) forwards() (list []sandbox.Forward, err error) {
	seen := map[string]bool{}
	add := func(network, address string) {
		if !seen[network+address] {
			seen[network+address] = true
			both := sandbox.Address{Network: network, Address: address}
			list = append(list, sandbox.Forward{Inside: both, Outside: both})
		}
	}
	for _, server := range slices.Concat(v.a.Server.URLs(), v.a.Server.Sessions) {
		address := server
		if u, err := url.Parse(server); err == nil && u.Host != "" {
			address = u.Host
			if u.Port() == "" {
				address = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
			}
		}
		inside, err := loopback(address)
		if err != nil {
			return nil, err
		}
		add("tcp", inside)
	}
	if v.db == nil || v.db.Clone.Engine == database.SQLite {
		return list, nil
	}
	source, err := v.db.source()
	if err != nil {
		return nil, err
	}
	network, address, err := database.Endpoint(source)
	if err != nil {
		return nil, err
	}
	if network == "tcp" {
		if inside, err := loopback(address); err == nil {
			address = inside
		} else {
			// The variables of the command name this address, see environ.
			_, port, _ := net.SplitHostPort(address)
			list = append(list, sandbox.Forward{
				Inside:  sandbox.Address{Network: "tcp", Address: net.JoinHostPort("127.0.0.1", port)},
				Outside: sandbox.Address{Network: "tcp", Address: address},
			})
			return list, nil
		}
	}
	add(network, address)
	return list, nil
}

// loopback is an address of this machine with its IP address.
func loopback(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", cli.Usagef("--net loopback: the address %s cannot be read", cli.Clean(address))
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return "", cli.Usagef(
			"--net loopback: %s is not an address of this machine: use --net host, or --net off for a command without a server",
			cli.Clean(address),
		)
	}
	return net.JoinHostPort(host, port), nil
}

func newSandbox(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "sandbox",
		Short: "Show what a sandbox enforces on this machine",
		Long: `Show what "interlock workspace run --sandbox" enforces and what it does not, by mechanism, and
which mechanisms work on this machine. It asks no server.`,
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.Offline: "true"},
		RunE: func(*cobra.Command, []string) error {
			works := map[sandbox.Mechanism]string{}
			for mechanism, err := range sandbox.Available() {
				works[mechanism] = ""
				if err != nil {
					works[mechanism] = err.Error()
				}
			}
			if a.JSON() {
				return a.Print(map[string]any{"table": sandbox.Table, "unavailable": works})
			}
			t := a.Table("WHAT", "BUBBLEWRAP", "NAMESPACES", "NONE", "NOTE")
			for _, r := range sandbox.Table {
				t.Row(r.Subject, string(r.Bubblewrap), string(r.Namespaces), string(r.Without), cli.OrDash(r.Note))
			}
			if err := t.Write(a.Out); err != nil {
				return err
			}
			for _, mechanism := range []sandbox.Mechanism{sandbox.Bubblewrap, sandbox.Namespaces} {
				if why := works[mechanism]; why != "" {
					a.Complain("%s: %s", mechanism, cli.Clean(why))
				} else {
					a.Complain("%s works here", mechanism)
				}
			}
			return nil
		},
	}
}
