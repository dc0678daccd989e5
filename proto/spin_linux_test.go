package proto

import (
	"errors"
	"io"
	"runtime"
	"testing"
)

// A link that spins looks for what comes before it sleeps, and is otherwise as ever.
func TestSpin(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	client, server := framedPair(t)
	var looked int
	link := client.(*FramedLink[ClientFrame, ServerFrame])
	spin := func(exclusive bool) {
		link.Spin(func() bool { looked++; return exclusive })
	}
	var down ServerFrame
	recv := func() {
		t.Helper()
		if err := server.Send(&ServerFrame{Epoch: 7}); err != nil {
			t.Fatal(err)
		}
		if err := link.Recv(&down); err != nil || down.Epoch != 7 {
			t.Fatalf("got %d, %v", down.Epoch, err)
		}
	}
	// What is there already is read at once, and what comes later after all.
	for range 100 {
		spin(true)
		recv()
		spin(false)
		recv()
	}
	// It is for one read.
	looked = 0
	recv()
	if looked > 0 {
		t.Errorf("it spun %d times unasked", looked)
	}
	// It looks before it sleeps: nothing is there before it has.
	link.Spin(func() bool {
		if looked++; looked == 1 {
			if err := server.Send(&ServerFrame{Epoch: 8}); err != nil {
				t.Error(err)
			}
		}
		return true
	})
	if err := link.Recv(&down); err != nil || down.Epoch != 8 || looked == 0 {
		t.Errorf("got %d, %v after %d looks", down.Epoch, err, looked)
	}
	spin(true)
	server.Close(nil)
	if err := link.Recv(&down); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}
