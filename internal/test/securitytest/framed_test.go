package securitytest

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/proto"
)

// The session port without gRPC: the options of an attacker that frames by hand.

// session opens a connection to the session port.
func (s *site) session(t *testing.T) net.Conn {
	t.Helper()
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: busy.Patience()}, "tcp", s.server.GRPC, s.tls())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// framed begins a framed link, with a credential and a namespace.
func (s *site) framed(
	t *testing.T, credential, namespace string,
) (*proto.FramedLink[proto.ClientFrame, proto.ServerFrame], error) {
	t.Helper()
	link := proto.ClientFramed(s.session(t), 64<<20, proto.IdleTimeouts{Ask: busy.Patience(), Expect: busy.Patience()})
	t.Cleanup(func() { link.Close(nil) })
	return link, link.Begin(proto.Hello{Credential: credential, Namespace: interlock.Namespace(namespace)})
}

// framedEnds waits for the end of a link and returns the code that the server names.
func framedEnds(t *testing.T, link *proto.FramedLink[proto.ClientFrame, proto.ServerFrame]) interlock.Code {
	t.Helper()
	var frame proto.ServerFrame
	for {
		if err := link.Recv(&frame); err != nil {
			refusal, ok := errors.AsType[*interlock.Error](err)
			if !ok {
				t.Errorf("the link ended with %v", err)
				return ""
			}
			return refusal.Code
		}
	}
}

func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// framedStrangers begins links without credentials, and in the name of others.
func framedStrangers(t *testing.T, s *site) {
	for name, c := range map[string]struct {
		credential, namespace string
		want                  interlock.Code
	}{
		"no credential":         {"", "", interlock.CodeUnauthenticated},
		"a wrong one":           {"ilk_wrong", "", interlock.CodeUnauthenticated},
		"another's namespace":   {s.secrets[rival], acme, interlock.CodeForbidden},
		"a credential and more": {s.secrets[rival] + "\n", "", interlock.CodeUnauthenticated},
	} {
		_, err := s.framed(t, c.credential, c.namespace)
		if refusal, ok := errors.AsType[*interlock.Error](err); !ok || refusal.Code != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// framedFrames sends frames above the bound, and what is none.
func framedFrames(t *testing.T, s *site) {
	large, err := s.framed(t, s.secrets[rival], "")
	if err != nil {
		t.Fatal(err)
	}
	_ = large.Send(&proto.ClientFrame{
		Ops: []proto.Op{{Kind: proto.OpHeartbeat, Seq: 1, Progress: strings.Repeat("x", proto.MaxFrameBytes)}},
	})
	if code := framedEnds(t, large); code != interlock.CodeBodyTooLarge {
		t.Errorf("a large frame ends the link with %q", code)
	}
	for name, bytes := range map[string]string{
		"a hello without end":  proto.Preface + "\x02\xff\xff\xff\x7f" + strings.Repeat("x", 64<<10),
		"a frame before hello": proto.Preface + "\x01\x00\x00\x00\x00",
		"no record":            proto.Preface + "\x00\x00\x00\x00\x00",
		"another protocol":     "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		c := s.session(t)
		_ = c.SetDeadline(time.Now().Add(busy.Patience()))
		_, _ = io.WriteString(c, bytes)
		if b, err := io.ReadAll(c); timedOut(err) || len(b) > 4<<10 {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
}

// framedHalves opens connections that never say what they announce.
func framedHalves(t *testing.T, s *site) {
	before := s.memory(t)
	var last []net.Conn
	for _, said := range []string{"", "INTER", proto.Preface, proto.Preface + "\x02\x00\x40\x00\x00x"} {
		for range 50 {
			c := s.session(t)
			if _, err := io.WriteString(c, said); err != nil {
				t.Fatal(err)
			}
			last = append(last, c)
		}
	}
	undisturbed(t, s)
	if grown := s.memory(t) - before; grown > 64<<20 {
		t.Errorf("memory grew by %.0f bytes", grown)
	}
	for i := 49; i < len(last); i += 50 { // each is cut off after ten seconds
		_ = last[i].SetReadDeadline(time.Now().Add(busy.Patience()))
		if _, err := last[i].Read(make([]byte, 1)); err == nil || timedOut(err) {
			t.Errorf("connection %d is kept: %v", i, err)
		}
	}
}

// framedAnnounced announces frames of the largest size and sends a byte of each.
func framedAnnounced(t *testing.T, s *site) {
	before := s.memory(t)
	head := []byte{1, 0, 0, 0, 0, 'x'}
	n := proto.MaxFrameBytes
	for i := range 4 {
		head[1+i] = byte(n >> (8 * i))
	}
	for range 50 {
		c := s.session(t)
		link := proto.ClientFramed(c, 1<<20, proto.IdleTimeouts{Ask: busy.Patience(), Expect: busy.Patience()})
		if err := link.Begin(proto.Hello{Credential: s.secrets[rival]}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(head); err != nil {
			t.Fatal(err)
		}
	}
	undisturbed(t, s)
	if grown := s.memory(t) - before; grown > 24<<20 {
		t.Errorf("300 bytes in all, and memory grew by %.0f bytes", grown)
	}
}
