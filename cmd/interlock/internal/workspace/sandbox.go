package workspace

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/confine"
	"github.com/interlockdev/interlock/internal/loopback"
	"github.com/interlockdev/interlock/workspace"
	"github.com/interlockdev/interlock/workspace/database"
	"github.com/interlockdev/interlock/workspace/sandbox"
)

// box makes the sandbox of a workspace for a command.
func (v *visit) box(ctx context.Context, w *workspace.Workspace, argv, env []string) (*sandbox.Sandbox, error) {
	c := &v.confine
	needed, err := w.Needed(ctx)
	if err != nil {
		return nil, err
	}
	cfg := sandbox.Config{
		Argv: argv, Env: env, Dir: filepath.Join(w.Path(), v.folder),
		Write: slices.Concat([]string{w.Path(), w.GitDir()}, w.Shared()), Read: append(w.Borrowed(), needed...),
	}
	c.Into(&cfg)
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
		v.a.Complain("sandbox: %s", confine.Describe(s, cfg.Net))
	}
	return s, err
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
		inside, err := onLoopback(address)
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
		if inside, err := onLoopback(address); err == nil {
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

// onLoopback is an address of this machine with its IP address.
func onLoopback(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", cli.Usagef("--net loopback: the address %s cannot be read", cli.Clean(address))
	}
	if !loopback.Is(host) {
		return "", cli.Usagef(
			"--net loopback: %s is not an address of this machine: use --net host, or --net off for a command without a server",
			cli.Clean(address),
		)
	}
	if net.ParseIP(host) == nil { // a name, or an address with a zone
		ip, err := netip.ParseAddr(host)
		if host = ip.WithZone("").String(); err != nil {
			host = "127.0.0.1"
		}
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
