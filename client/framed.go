package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// silence is when a silent server is asked, and when it is given up.
var silence = proto.IdleTimeouts{Ask: 10 * time.Second, Expect: 10 * time.Second}

// alert is the same where there is another server to go to. A server answers such a question at once, whatever its
// engine and its disk do; over a slow line it has four times as long as it took to welcome the client.
var alert = proto.IdleTimeouts{Ask: time.Second, Expect: 1500 * time.Millisecond}

// framedLink is a proto.ClientLink over a connection of its own.
type framedLink struct {
	*proto.FramedLink[proto.ClientFrame, proto.ServerFrame]
	peer
}

// dialFramed connects, and returns when the server has said that the client is welcome, or
// why it is not.
func dialFramed(ctx context.Context, to peer, hello proto.Hello) (proto.ClientLink, error) {
	began := time.Now()
	conn, err := to.connect(ctx)
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx)
	}
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
		if to.servers.Places() > 1 {
			link.Listen(proto.IdleTimeouts{Ask: alert.Ask, Expect: max(alert.Expect, 4*time.Since(began))})
		}
		return &framedLink{link, to}, nil
	}
	link.Close(nil)
	if _, refused := errors.AsType[*interlock.Error](err); refused {
		return nil, to.turnedAway(err)
	}
	if errors.Is(err, proto.ErrStranger) {
		return nil, errors.New(
			"this is not the session port of an Interlock server, or it requires TLS: use the address of serve --grpc",
		)
	}
	return nil, whyClosed(err)
}

func (to *peer) connect(ctx context.Context) (net.Conn, error) {
	conn, err := to.servers.DialContext(ctx, "tcp", to.addr)
	if err != nil || to.security == nil {
		return conn, err
	}
	security := to.security.Clone()
	security.NextProtos = []string{proto.Protocol}
	if security.ServerName == "" {
		security.ServerName, _, _ = net.SplitHostPort(to.addr)
	}
	encrypted := tls.Client(conn, security)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return encrypted, nil
}

// turnedAway takes note of a refusal after which another address is tried next.
func (to *peer) turnedAway(err error) error {
	if refusal, _ := errors.AsType[*interlock.Error](err); leavesServer(refusal.Code) {
		to.elsewhere()
	}
	return err
}

// leavesServer reports whether another server may accept a client that one has refused with code.
func leavesServer(code interlock.Code) bool {
	switch code {
	case interlock.CodeShuttingDown, interlock.CodeNotOwner, interlock.CodeTooManyStreams:
		return true
	}
	return false
}

func (l *framedLink) Recv(f *proto.ServerFrame) error {
	err := l.FramedLink.Recv(f)
	if err == nil {
		return nil
	}
	if _, refused := errors.AsType[*interlock.Error](err); refused {
		return l.turnedAway(err)
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
