package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/endpoint"
	"github.com/interlockdev/interlock/proto"
)

// maxServerFrame bounds the frames of a server.
const maxServerFrame = 64 << 20

// overGRPC begins an address that is to be spoken to over gRPC.
const overGRPC = "grpc://"

// listOf returns the servers at addresses of Config.Addrs.
func listOf(addrs []string) *endpoint.List {
	list := make([]string, len(addrs))
	for i, addr := range addrs {
		list[i] = strings.TrimPrefix(addr, overGRPC)
	}
	return endpoint.New(list)
}

// dialer connects to the current one of the servers.
func dialer(cfg Config, servers *endpoint.List) Dialer {
	return func(ctx context.Context, hello proto.Hello) (proto.ClientLink, error) {
		at := servers.Current()
		to := peer{
			addr: servers.Addr(at), servers: servers, security: cfg.TLS,
			failed: sync.OnceFunc(func() { servers.Silent(at) }), elsewhere: sync.OnceFunc(func() { servers.Failed(at) }),
		}
		var link proto.ClientLink
		var err error
		if strings.HasPrefix(cfg.Addrs[at], overGRPC) {
			link, err = dialGRPC(ctx, to, hello)
		} else {
			link, err = dialFramed(ctx, to, hello)
		}
		if err != nil {
			if _, refused := errors.AsType[*interlock.Error](err); !refused {
				if ctx.Err() != context.Canceled { // else it was given up, which shows nothing about the server
					to.failed()
				}
				err = fmt.Errorf("%s: %w", to.addr, err)
			}
			return nil, err
		}
		return link, nil
	}
}

// peer is the server of one link. The next attempt goes to another one after failed, which is for a server that did not
// answer, and after elsewhere, which is for one that sends the client away. Both may be called more than once.
type peer struct {
	addr      string
	servers   *endpoint.List
	security  *tls.Config
	failed    func()
	elsewhere func()
}

// CheckAddr returns an error if an address for Config.Addrs is malformed, or nil.
func CheckAddr(addr string) error {
	_, _, err := net.SplitHostPort(strings.TrimPrefix(addr, overGRPC))
	return err
}
