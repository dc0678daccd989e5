package resp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
)

// ends reads what a client still gets, and waits for the end of its connection.
func (r *rig) ends(client string) string {
	r.Helper()
	_ = r.peer(client).conn.SetReadDeadline(time.Now().Add(time.Hour))
	b, err := io.ReadAll(r.peer(client).in)
	if err != nil && !errors.Is(err, io.ErrClosedPipe) {
		r.Errorf("%s: %v", client, err)
	}
	return string(b)
}

func (r *rig) send(client string, b []byte) {
	r.Helper()
	if _, err := r.peer(client).conn.Write(b); err != nil {
		r.Fatal(err)
	}
}

// TestPipeline: commands that come together are answered in order, and those that come in pieces as one.
func TestPipeline(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		var b []byte
		for i := range 40 {
			b = append(b, encode([]string{"ECHO", fmt.Sprint(i)})...)
		}
		a := r.peer("a")
		go func() { _, _ = a.conn.Write(b) }()
		for i := range 40 {
			if got := r.answer(r.peer("a")); got != fmt.Sprint("$", i) {
				t.Errorf("answer %d is %s", i, got)
			}
		}
		for _, x := range encode([]string{"SET", "k", strings.Repeat("v", 300), "NX", "EX", "30"}) {
			r.send("b", []byte{x})
		}
		if got := r.answer(r.peer("b")); got != "+OK" {
			t.Error(got)
		}
		r.send("b", []byte("PING\r\n"))
		if got := r.answer(r.peer("b")); got != "+PONG" {
			t.Error(got)
		}
		r.wants("b", "QUIT", "+OK")
		if got := r.ends("b"); got != "" {
			t.Errorf("after the end: %q", got)
		}
	})
}

// TestHostileClients: a command without an end, with a wrong form, of HTTP or of TLS ends its connection and
// no other.
func TestHostileClients(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		r.wants("good", "SET k one NX EX 300", "+OK")
		for name, c := range map[string]struct{ in, want string }{
			"numbers": {"*1000000\r\n", "-ERR Protocol error: invalid number of arguments"},
			"length":  {"*1\r\n$1000000000\r\n", "-ERR Protocol error: invalid length"},
			"http":    {"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n", "-ERR Protocol error: this port speaks the Redis protocol"},
			"tls":     {"\x16\x03\x01\x00\xa5\x01\x00\n", "-ERR Protocol error: this port does not speak TLS"},
			"form":    {"*1\r\n:4\r\n", "-ERR Protocol error: "},
		} {
			p := r.peer(name)
			go func() { _, _ = p.conn.Write([]byte(c.in)) }()
			synctest.Wait()
			if got := r.ends(name); !strings.HasPrefix(got, c.want) {
				t.Errorf("%s: %q, want %s", name, got, c.want)
			}
		}
		// One that begins a command has 10 s for it.
		r.send("slow", []byte("*2\r\n$3\r\nGET\r\n"))
		began := time.Now()
		if got := r.ends("slow"); got != "" || time.Since(began) != 10*time.Second {
			t.Errorf("slow: %q after %v", got, time.Since(began))
		}
		// The 10 s are for the whole command, and the next one has its own.
		began = time.Now()
		for _, b := range encode([]string{"ECHO", strings.Repeat("x", 30)})[:40] {
			if _, err := r.peer("drops").conn.Write([]byte{b}); err != nil {
				break
			}
			r.pass(time.Second)
		}
		if got := r.ends("drops"); got != "" || time.Since(began) > 12*time.Second {
			t.Errorf("drops: %q after %v", got, time.Since(began))
		}
		for range 3 {
			r.send("steady", []byte("ECHO x"))
			r.pass(6 * time.Second)
			p := r.peer("steady")
			go func() { _, _ = p.conn.Write([]byte("\r\nECHO ")) }()
			if got := r.answer(p); got != "$x" {
				t.Errorf("steady: %s", got)
			}
			r.pass(6 * time.Second)
			go func() { _, _ = p.conn.Write([]byte("x\r\n")) }()
			if got := r.answer(p); got != "$x" {
				t.Errorf("steady: %s", got)
			}
		}
		// One that does not read is cut off after 30 s, and one that is idle is not.
		r.send("deaf", bytes.Repeat(encode([]string{"PING"}), 3))
		r.pass(31 * time.Second)
		if _, err := r.peer("deaf").conn.Write([]byte("x")); err == nil {
			t.Error("deaf: is still there")
		}
		r.wants("good", "GET k", "$one")
	})
}

// TestStrangers: before its credential is known, a client may send little.
func TestStrangers(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		a, b := r.peer("a"), r.peer("b")
		go func() { _, _ = a.conn.Write(encode([]string{"ECHO", strings.Repeat("x", 5000)})) }()
		want := "-ERR Protocol error: invalid length of an argument: 5000, and the maximum is 4096"
		if got := r.ends("a"); !strings.HasPrefix(got, want) {
			t.Error(got)
		}
		r.wants("b", "GET k", "nil")
		go func() { _, _ = b.conn.Write(encode([]string{"ECHO", strings.Repeat("x", 60000)})) }()
		if got := r.answer(b); len(got) != 60001 {
			t.Errorf("%d bytes", len(got))
		}
		r.wants("b", "RESET", "+RESET") // and it is a stranger again
		go func() { _, _ = b.conn.Write(encode([]string{"ECHO", strings.Repeat("x", 5000)})) }()
		if got := r.ends("b"); !strings.HasPrefix(got, want) {
			t.Error(got)
		}
	})
}

// TestShutdown: idle connections end at once, commands under way are answered, and nothing new is taken.
func TestShutdown(t *testing.T) {
	inBubble(t, Config{}, func(r *rig) {
		r.wants("a", "SET k one NX EX 30", "+OK")
		done := make(chan struct{})
		go func() {
			r.door.Shutdown(context.Background())
			close(done)
		}()
		<-done
		if got := r.ends("a"); got != "" {
			t.Errorf("%q", got)
		}
		near, far := net.Pipe()
		defer near.Close()
		if r.door.enter(far) != nil {
			t.Error("a connection was taken after the end")
		}
	})
}

// TestIdleConnection bounds the memory of a connection that waits.
func TestIdleConnection(t *testing.T) {
	const many = 2000
	inBubble(t, Config{}, func(r *rig) {
		var before, after runtime.MemStats
		r.do("first", "GET", "k")
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range many {
			name := fmt.Sprint(i)
			p := r.peer(name)
			go func() { _, _ = p.conn.Write(encode([]string{"ECHO", strings.Repeat("x", 3000)})) }()
			r.answer(p)
			p.in = nil // the test's own buffer
		}
		synctest.Wait()
		runtime.GC()
		runtime.ReadMemStats(&after)
		each := (int64(after.HeapAlloc+after.StackInuse) - int64(before.HeapAlloc+before.StackInuse)) / many
		t.Logf("%d bytes for an idle connection, with its pipe", each)
		if each > 16<<10 {
			t.Errorf("an idle connection takes %d bytes", each)
		}
	})
}

// TestErrorLine: an error is one line, whatever is in its texts.
func TestErrorLine(t *testing.T) {
	err := &interlock.Error{
		Code: interlock.CodeHeld, Message: "it is held\r\n+OK", Advice: interlock.Advice{Message: "wait"},
	}
	if got := errorLine(err); got != "ERR held: it is held  +OK; wait" {
		t.Errorf("%q", got)
	}
}
