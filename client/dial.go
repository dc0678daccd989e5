package client

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// maxServerFrame bounds the frames of a server.
const maxServerFrame = 64 << 20

// dialer connects to the addresses in turn, beginning with the one that answered last.
func dialer(cfg Config) (Dialer, error) {
	if len(cfg.Addrs) == 0 {
		return nil, errors.New("client: Config.Addrs is empty: name the host:port of a server's session port, such as " +
			"127.0.0.1:7421")
	}
	var start atomic.Uint32
	return func(ctx context.Context, hello proto.Hello) (proto.ClientLink, error) {
		var errs []error
		for range cfg.Addrs {
			addr := cfg.Addrs[int(start.Load())%len(cfg.Addrs)]
			link, err := dialOne(ctx, addr, cfg, hello, sync.OnceFunc(func() { start.Add(1) }))
			if err == nil {
				return link, nil
			}
			if _, refused := errors.AsType[*interlock.Error](err); refused {
				return nil, err
			}
			start.Add(1)
			errs = append(errs, err)
		}
		return nil, errors.Join(errs...)
	}, nil
}

// overGRPC begins an address that is to be spoken to over gRPC.
const overGRPC = "grpc://"

// dialOne connects to one address. After failed the next attempt goes to the next one; it
// may be called more than once.
func dialOne(ctx context.Context, addr string, cfg Config, hello proto.Hello, failed func()) (proto.ClientLink, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, dialTimeout, errors.New(addr+" says nothing"))
	defer cancel()
	if rpc, ok := strings.CutPrefix(addr, overGRPC); ok {
		return dialGRPC(ctx, rpc, cfg.TLS, hello, failed)
	}
	return dialFramed(ctx, addr, cfg.TLS, hello, failed)
}

// CheckAddr returns an error if an address for Config.Addrs is malformed, or nil.
func CheckAddr(addr string) error {
	_, _, err := net.SplitHostPort(strings.TrimPrefix(addr, overGRPC))
	return err
}
