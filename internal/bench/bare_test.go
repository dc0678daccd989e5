package bench

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// A bare server that goes away in a run ends the run, with the reason.
func TestBareServerGoes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	serve := func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.CopyN(conn, conn, 100*messageSize)
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn) // until the agents have gone
	}
	for _, agents := range []int{1, 4} {
		go serve()
		_, err = bareCycles(t.Context(), l.Addr().String(), agents, time.Hour)
		if !errors.Is(err, io.EOF) {
			t.Errorf("the run of %d agents ended with %v, want the connection's %v", agents, err, io.EOF)
		}
	}
}
