package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/guard/apiclient"
	"github.com/interlockdev/interlock/server"
)

// listenFlags is the flags of a guard that is a server of its own.
type listenFlags struct {
	addr, cert, key string
}

func (l *listenFlags) flags(cmd *cobra.Command, addr string) {
	f := cmd.Flags()
	f.StringVar(&l.addr, "listen", addr, "`address` to listen on; port 0 picks a free one")
	f.StringVar(&l.cert, "tls-cert", "", "`file` with the certificate (PEM); the guard then speaks TLS only")
	f.StringVar(&l.key, "tls-key", "", "`file` with the certificate's key (PEM)")
}

func (l *listenFlags) check() error {
	if (l.cert == "") != (l.key == "") {
		return cli.Usagef("--tls-cert and --tls-key belong together: set both, or neither")
	}
	if _, _, err := net.SplitHostPort(l.addr); err != nil {
		return cli.Usagef("--listen %s: want host:port, such as 127.0.0.1:7430", cli.Clean(l.addr))
	}
	return nil
}

// serve serves until a signal, and then lets calls under way end for a while.
func (l *listenFlags) serve(ctx context.Context, a *cli.App, s *http.Server) error {
	log := slog.New(slog.NewTextHandler(a.Err, nil))
	signals := cli.WatchSignals()
	defer signals.Stop()

	var certificate *server.Certificate
	if l.cert != "" {
		var err error
		if certificate, err = server.LoadCertificate(l.cert, l.key, log); err != nil {
			return cli.ExitWith(cli.ExitUsage, err)
		}
		s.TLSConfig = certificate.TLSConfig()
	} else if server.CheckListen(l.addr, false, false) != nil {
		log.Warn(
			"other machines can reach the guard without TLS: the agents' lease ids travel in clear text", "next",
			"set --tls-cert and --tls-key",
		)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.addr)
	if err != nil {
		return fmt.Errorf("--listen: %w: choose another address, or stop what uses it", err)
	}
	if _, err := fmt.Fprintf(a.Out, "ready http=%s\n", listener.Addr()); err != nil {
		log.Warn("standard output is closed", "error", err)
	}
	failed := make(chan error, 1)
	go func() { failed <- server.ServeStrict(s, listener) }()
	for {
		select {
		case <-signals.Stopping():
			ctx, cancel := context.WithTimeout(ctx, guardShutdown)
			defer cancel()
			return s.Shutdown(ctx)
		case <-signals.Reload:
			switch {
			case certificate != nil:
				if err := certificate.Reload(); err != nil {
					log.Error("the certificate stays as it was", "error", err)
				}
			case signals.Hangup:
				signals.StopNow("SIGHUP")
			}
		case err := <-failed:
			if errors.Is(err, http.ErrServerClosed) {
				return nil
			}
			return fmt.Errorf("the listener failed: %w", err)
		}
	}
}

// guardShutdown is how long calls under way may go on after a signal.
const guardShutdown = 10 * time.Second

// serverAPI is the server's API, as a guard uses it.
func serverAPI(a *cli.App) (*apiclient.Client, error) {
	t := &a.Server
	return apiclient.New(apiclient.Config{
		URLs: t.URLs(), Credential: t.Credential, Namespace: t.Tenant(), TLS: t.TLS,
	})
}
