package proto

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
)

var patient = IdleTimeouts{Ask: time.Hour, Expect: time.Hour}

// framedPair is a link over loopback after both ends have said hello.
func framedPair(t *testing.T) (ClientLink, ServerLink) {
	t.Helper()
	ours, theirs := connected(t)
	client, server := ClientFramed(ours, 64<<20, patient), ServerFramed(theirs, MaxFrameBytes, patient)
	greeted := make(chan error, 1)
	go func() {
		if _, err := io.ReadFull(theirs, make([]byte, len(Preface))); err != nil {
			greeted <- err
			return
		}
		hello, err := server.Hello()
		if err == nil && hello != (Hello{Namespace: "acme", Credential: "secret"}) {
			err = errors.New("another hello came than was sent")
		}
		greeted <- errors.Join(err, server.Welcome())
	}()
	if err := client.Begin(Hello{Namespace: "acme", Credential: "secret"}); err != nil {
		t.Fatal(err)
	}
	if err := <-greeted; err != nil {
		t.Fatal(err)
	}
	return client, server
}

func connected(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if ours, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if theirs, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
	return ours, theirs
}

func TestFramed(t *testing.T) {
	client, server := framedPair(t)
	var up ClientFrame
	for _, size := range []int{1, 5000, 70_000, MaxOpBytes, 3} {
		sent := ClientFrame{Ops: []Op{{Kind: OpAcquire, Slot: 1, Seq: 7, LeaseRequest: interlock.LeaseRequest{
			Purpose: strings.Repeat("x", size),
		}}}}
		done := make(chan error, 1)
		go func() { done <- client.Send(&sent) }()
		if err := server.Recv(&up); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil || len(up.Ops) != 1 || len(up.Ops[0].Purpose) != size {
			t.Fatalf("%d bytes: %v, %d operations", size, err, len(up.Ops))
		}
	}
	if err := server.Send(&ServerFrame{Epoch: 3}); err != nil {
		t.Fatal(err)
	}
	// Frames sent before the end arrive before it.
	server.Close(&interlock.Error{Code: interlock.CodeShuttingDown, Message: strings.Repeat("é", maxHello)})
	var down ServerFrame
	if err := client.Recv(&down); err != nil || down.Epoch != 3 {
		t.Fatalf("got %+v, %v", down, err)
	}
	refusal, ok := errors.AsType[*interlock.Error](client.Recv(&down))
	if !ok || refusal.Code != interlock.CodeShuttingDown || !strings.HasPrefix(refusal.Message, "éé") {
		t.Errorf("got %+v", refusal)
	}
	if err := server.Send(&down); !errors.Is(err, io.EOF) {
		t.Errorf("Send after Close: %v", err)
	}
}

// Closing ends calls of the same side that are under way, and the other side reads on to the
// end. Frames that have arrived together are known to be there, and half a frame is none.
func TestFramedReady(t *testing.T) {
	ours, theirs := connected(t)
	link := ServerFramed(theirs, MaxFrameBytes, patient)
	body := string((&ClientFrame{Ops: []Op{{Kind: OpGetLease, Slot: 1, Seq: 7}}}).AppendTo(nil))
	one := rawRecord(recordFrame, len(body), body)
	half := len(one) / 2
	if _, err := io.WriteString(ours, one+one+one[:half]); err != nil {
		t.Fatal(err)
	}
	for i, more := range []bool{true, false, false} {
		if i == 2 {
			if _, err := io.WriteString(ours, one[half:]); err != nil {
				t.Fatal(err)
			}
		}
		if err := link.Recv(new(ClientFrame)); err != nil {
			t.Fatal(err)
		}
		if yes, ok := link.Ready(); !ok || yes != more {
			t.Errorf("after frame %d: %v, %v, want %v", i, yes, ok, more)
		}
	}
	piped, _ := net.Pipe()
	if yes, ok := ServerFramed(piped, MaxFrameBytes, patient).Ready(); yes || ok {
		t.Error("a connection that is none of the system's says what has arrived")
	}
}

func TestFramedCloses(t *testing.T) {
	client, server := framedPair(t)
	ended := make(chan error, 1)
	go func() { ended <- server.Recv(&ClientFrame{}) }()
	server.Close(nil)
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Errorf("the closing side: %v", err)
	}
	if err := client.Recv(&ServerFrame{}); !errors.Is(err, io.EOF) {
		t.Errorf("the other side: %v", err)
	}
	client.Close(nil)
	<-server.(*FramedLink[ServerFrame, ClientFrame]).Done()
}

// A side that reads nothing does not block the other for ever.
func TestFramedClosesWhileSending(t *testing.T) {
	client, server := framedPair(t)
	full := make(chan error, 1)
	go func() {
		big := ServerFrame{GoAway: &GoAway{Message: strings.Repeat("x", 1<<20)}}
		for {
			if err := server.Send(&big); err != nil {
				full <- err
				return
			}
		}
	}()
	if err := client.Recv(&ServerFrame{}); err != nil { // it sends, and the other side does not read on
		t.Fatal(err)
	}
	server.Close(&interlock.Error{Code: interlock.CodeOverloaded})
	if err := <-full; err == nil {
		t.Error("sent to nobody")
	}
	<-server.(*FramedLink[ServerFrame, ClientFrame]).Done()
}

// rawRecord is raw bytes with a head.
func rawRecord(kind recordKind, length int, body string) string {
	head := make([]byte, recordHead)
	head[0] = byte(kind)
	binary.LittleEndian.PutUint32(head[1:], uint32(length))
	return string(head) + body
}

func TestFramedRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		bytes string
		want  error
	}{
		"another protocol": {"HTTP/1.1 400 Bad Request\r\n\r\n", ErrStranger},
		"an alert of TLS":  {"\x15\x03\x01\x00\x02\x02\x46", ErrStranger},
		"no kind":          {rawRecord(0, 0, ""), ErrStranger},
		"no frame":         {rawRecord(recordFrame, 3, "\xff\xff\xff"), ErrFrame},
		"cut short":        {rawRecord(recordFrame, 3, "\x08"), io.ErrUnexpectedEOF},
		"cut in the head":  {"\x01", io.ErrUnexpectedEOF},
		"nothing":          {"", io.EOF},
		"an end":           {rawRecord(recordEnd, 0, ""), io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := connected(t)
			if _, err := io.WriteString(theirs, c.bytes); err != nil {
				t.Fatal(err)
			}
			_ = theirs.Close()
			if err := ClientFramed(ours, 1<<20, patient).Recv(&ServerFrame{}); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// An announced frame is refused if it is too large, and gets no memory before it comes.
func TestFramedAnnounced(t *testing.T) {
	ours, theirs := connected(t)
	l := ServerFramed(ours, MaxFrameBytes, patient)
	if _, err := io.WriteString(theirs, rawRecord(recordFrame, MaxFrameBytes, "x")); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	if err := l.Recv(&ClientFrame{}); !errors.Is(err, io.ErrUnexpectedEOF) || len(l.in) > mostRead {
		t.Errorf("got %v with a buffer of %d bytes", err, len(l.in))
	}
	for _, r := range []string{
		rawRecord(recordFrame, MaxFrameBytes+1, ""), rawRecord(recordPing, maxHello+1, ""),
		rawRecord(recordFrame, 1<<31, ""),
	} {
		ours, theirs := connected(t)
		if _, err := io.WriteString(theirs, r); err != nil {
			t.Fatal(err)
		}
		_ = theirs.Close() // or the reader would wait for the rest
		if _, ok := errors.AsType[*TooLarge](ServerFramed(ours, MaxFrameBytes, patient).Recv(&ClientFrame{})); !ok {
			t.Errorf("%x was taken", r)
		}
	}
}

// A side that hears nothing asks, and reports a broken link only when nothing comes back.
func TestFramedSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		l := ClientFramed(ours, 1<<20, IdleTimeouts{Ask: 10 * time.Second, Expect: 5 * time.Second})
		got := make(chan error, 1)
		go func() { got <- l.Recv(&ServerFrame{}) }()

		began := time.Now()
		asked := make([]byte, recordHead)
		for range 3 {
			if _, err := io.ReadFull(theirs, asked); err != nil || recordKind(asked[0]) != recordPing {
				t.Fatalf("got %x, %v", asked, err)
			}
			if _, err := io.WriteString(theirs, rawRecord(recordPong, 0, "")); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("three questions came within %v", took)
		}
		if _, err := io.ReadFull(theirs, asked); err != nil {
			t.Fatal(err)
		}
		if err := <-got; !errors.Is(err, ErrSilent) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != 45*time.Second {
			t.Errorf("given up after %v", took)
		}
		l.Close(nil)
		<-l.Done()
	})
}

// A side that asks without end is answered once a second.
func TestFramedPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		l := ServerFramed(ours, 1<<20, patient)
		ended := make(chan error, 1)
		go func() { ended <- l.Recv(&ClientFrame{}) }()
		answers := make(chan []byte)
		go func() {
			all, _ := io.ReadAll(theirs)
			answers <- all
		}()
		ask := func(n int) {
			if _, err := io.WriteString(theirs, strings.Repeat(rawRecord(recordPing, 0, ""), n)); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		ask(1000)
		time.Sleep(pongEvery) // in virtual time
		ask(1000)
		l.Close(nil)
		<-ended
		<-l.Done()
		if got := <-answers; string(got) != strings.Repeat(rawRecord(recordPong, 0, ""), 2) {
			t.Errorf("got %x", got)
		}
	})
}

func FuzzFramed(f *testing.F) {
	f.Add([]byte(rawRecord(recordFrame, 2, "\x0a\x00") + rawRecord(recordPing, 0, "") + rawRecord(recordEnd, 0, "")))
	f.Add([]byte(rawRecord(recordHello, 3, "\x0a\x01x") + rawRecord(recordFrame, 1, "")))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := ServerFramed(&playback{rest: b}, 1<<16, patient)
		var frame ClientFrame
		for range len(b) + 1 { // each record takes bytes
			if l.Recv(&frame) != nil {
				return
			}
		}
		t.Error("it does not end")
	})
}

// playback is a connection that yields some bytes and then ends.
type playback struct {
	net.Conn
	rest []byte
}

func (p *playback) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
func (p *playback) Write(b []byte) (int, error)      { return len(b), nil }
func (p *playback) SetReadDeadline(time.Time) error  { return nil }
func (p *playback) SetWriteDeadline(time.Time) error { return nil }
