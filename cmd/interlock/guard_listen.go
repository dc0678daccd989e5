package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

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
		return usage("--tls-cert and --tls-key belong together: set both, or neither")
	}
	if _, _, err := net.SplitHostPort(l.addr); err != nil {
		return usage("--listen %s: want host:port, such as 127.0.0.1:7430", clean(l.addr))
	}
	return nil
}

// serve serves until a signal, and then lets calls under way end for a while.
func (l *listenFlags) serve(ctx context.Context, a *app, s *http.Server) error {
	log := slog.New(slog.NewTextHandler(a.err, nil))
	signals := watchSignals()
	defer signals.stop()

	var certificate *server.Certificate
	if l.cert != "" {
		var err error
		if certificate, err = server.LoadCertificate(l.cert, l.key, log); err != nil {
			return exitWith(exitUsage, err)
		}
		s.TLSConfig = certificate.TLSConfig()
	} else if public(l.addr) {
		log.Warn(
			"other machines can reach the guard without TLS: the agents' lease ids travel in clear text", "next",
			"set --tls-cert and --tls-key",
		)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.addr)
	if err != nil {
		return fmt.Errorf("--listen: %w: choose another address, or stop what uses it", err)
	}
	if _, err := fmt.Fprintf(a.out, "ready http=%s\n", listener.Addr()); err != nil {
		log.Warn("standard output is closed", "error", err)
	}
	failed := make(chan error, 1)
	go func() {
		if certificate != nil {
			failed <- s.ServeTLS(listener, "", "")
		} else {
			failed <- s.Serve(listener)
		}
	}()
	for {
		select {
		case <-signals.stopping():
			ctx, cancel := context.WithTimeout(ctx, guardShutdown)
			defer cancel()
			return s.Shutdown(ctx)
		case <-signals.reload:
			switch {
			case certificate != nil:
				if err := certificate.Reload(); err != nil {
					log.Error("the certificate stays as it was", "error", err)
				}
			case signals.hangup:
				signals.stopNow("SIGHUP")
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

// door is the server's, as a guard uses it.
func (a *app) door() (*apiclient.Client, error) {
	t := &a.server
	return apiclient.New(apiclient.Config{
		URL: t.base.String(), Credential: t.Credential, Namespace: t.namespace(), TLS: t.tls,
	})
}
