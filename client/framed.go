package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// silence is when a silent server is asked, and when it is given up.
var silence = proto.IdleTimeouts{Ask: 10 * time.Second, Expect: 10 * time.Second}

// framedLink is a proto.ClientLink over a connection of its own.
type framedLink struct {
	*proto.FramedLink[proto.ClientFrame, proto.ServerFrame]
	failed func() // the next attempt goes to the next address
}

// dialFramed connects, and returns when the server has said that the client is welcome, or
// why it is not.
func dialFramed(
	ctx context.Context, addr string, security *tls.Config, hello proto.Hello, failed func(),
) (proto.ClientLink, error) {
	conn, err := connectTo(ctx, addr, security)
	if err != nil {
		return nil, err
	}
	link := proto.ClientFramed(conn, maxServerFrame, silence)
	stop := context.AfterFunc(ctx, func() { link.Close(nil) })
	err = link.Begin(hello)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err == nil {
		return &framedLink{link, failed}, nil
	}
	link.Close(nil)
	if _, refused := errors.AsType[*interlock.Error](err); refused {
		return nil, turnedAway(err, failed)
	}
	if errors.Is(err, proto.ErrStranger) {
		return nil, fmt.Errorf(
			"%s is not the session port of an Interlock server, or it requires TLS: use the address of serve --grpc",
			addr,
		)
	}
	return nil, fmt.Errorf("%s: %w", addr, err)
}

func connectTo(ctx context.Context, addr string, security *tls.Config) (net.Conn, error) {
	if security == nil {
		var plain net.Dialer
		return plain.DialContext(ctx, "tcp", addr)
	}
	security = security.Clone()
	security.NextProtos = []string{proto.Protocol}
	return (&tls.Dialer{Config: security}).DialContext(ctx, "tcp", addr)
}

// turnedAway takes note of a refusal after which another address is tried next.
func turnedAway(err error, failed func()) error {
	refusal, _ := errors.AsType[*interlock.Error](err)
	switch refusal.Code {
	case interlock.CodeShuttingDown, interlock.CodeNotOwner, interlock.CodeTooManyStreams:
		failed()
	}
	return err
}

func (l *framedLink) Recv(f *proto.ServerFrame) error {
	err := l.FramedLink.Recv(f)
	if err == nil {
		return nil
	}
	if _, refused := errors.AsType[*interlock.Error](err); refused {
		return turnedAway(err, l.failed)
	}
	l.failed()
	return err
}

// Close with a reason blames the server: the next attempt goes to another one.
func (l *framedLink) Close(reason *interlock.Error) {
	if reason != nil {
		l.failed()
	}
	l.FramedLink.Close(nil)
}
