package sandbox

import (
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// forwarder connects what arrives at listeners inside to addresses outside.
type forwarder struct {
	mu     sync.Mutex
	closed bool
	open   map[io.Closer]bool
	wg     sync.WaitGroup
}

// maxConnections is how many may be open at once through one sandbox; more wait in the listener's backlog.
const maxConnections = 256

// dialTimeout bounds a connection outside.
const dialTimeout = 10 * time.Second

// serve takes the listeners, in the order of the addresses.
func (f *forwarder) serve(list []Forward, fds []int) {
	slots := make(chan struct{}, maxConnections)
	for i, fd := range fds {
		if i >= len(list) {
			unix.Close(fd)
			continue
		}
		file := os.NewFile(uintptr(fd), "listener")
		l, err := net.FileListener(file)
		file.Close()
		if err != nil || !f.add(l) {
			continue
		}
		f.wg.Go(func() { f.accept(l, list[i].Outside, slots) })
	}
}

func (f *forwarder) accept(l net.Listener, to Address, slots chan struct{}) {
	for {
		slots <- struct{}{}
		inside, err := l.Accept()
		if err != nil {
			<-slots
			return
		}
		f.wg.Go(func() {
			defer func() { <-slots }()
			f.connect(inside, to)
		})
	}
}

func (f *forwarder) connect(inside net.Conn, to Address) {
	defer f.drop(inside)
	if !f.add(inside) {
		return
	}
	outside, err := net.DialTimeout(to.Network, to.Address, dialTimeout)
	if err != nil || !f.add(outside) {
		return // the command sees a closed connection
	}
	defer f.drop(outside)
	var both sync.WaitGroup
	both.Go(func() { oneWay(outside, inside) })
	both.Go(func() { oneWay(inside, outside) })
	both.Wait()
}

// oneWay copies until the sender has sent all, and passes that on.
func oneWay(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	to.Close()
	from.Close()
}

// add notes what close must close; it closes it at once when all is closed.
func (f *forwarder) add(c io.Closer) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		c.Close()
		return false
	}
	if f.open == nil {
		f.open = map[io.Closer]bool{}
	}
	f.open[c] = true
	return true
}

func (f *forwarder) drop(c io.Closer) {
	c.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, c)
}

// close ends all connections, and waits for their goroutines.
func (f *forwarder) close() {
	f.mu.Lock()
	f.closed = true
	for c := range f.open {
		c.Close()
	}
	f.mu.Unlock()
	f.wg.Wait()
}
