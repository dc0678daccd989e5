package proto

import (
	"io"
	"runtime"
	"syscall"
	"time"
)

// spinTime is for how long a read spins: about as long as it takes to wake a processor that
// sleeps. So what comes soon is read that much earlier, and what comes later has cost at most
// twice as much.
const spinTime = 60 * time.Microsecond

// spinState is the processor use of a link's reads while nothing has come.
//
//	state      event                                             next
//	sleeping   Spin                                              armed
//	armed      a read begins                                     spinning
//	spinning   nothing has come                                  spinning
//	           nothing has come in spinTime, or other work has   parked
//	           bytes, the end of the connection or an error      sleeping
//	parked     the poller reports that there may be something    spinning
//	           the connection is closed, or its deadline passes  sleeping
type spinState uint8

const (
	sleeping spinState = iota // the next read leaves its processor until something comes
	armed                     // the next read spins first
	spinning                  // a read looks again and again
	parked                    // a read has spun, and has left its processor to Go's poller
)

// spinRead is the read of a link that can wait without sleeping. Only the goroutine that calls
// Recv uses it.
type spinRead struct {
	state     spinState
	raw       syscall.RawConn // nil until the first Spin
	exclusive func() bool     // no other goroutine needs the processor; unless sleeping

	// Of the read at hand, while spinning or parked:
	began time.Time
	buf   []byte
	n     int   // bytes that have come
	err   error // of the system call
}

// Spin implements [SpinReader].
func (l *FramedLink[Out, In]) Spin(exclusive func() bool) {
	s := &l.spin
	if s.raw == nil {
		plain, ok := l.conn.(syscall.Conn)
		if !ok {
			return
		}
		raw, err := plain.SyscallConn()
		if err != nil {
			return
		}
		s.raw = raw
	}
	if runtime.GOMAXPROCS(0) > 1 { // else it would keep all others from working
		s.state, s.exclusive = armed, exclusive
	}
}

// receive reads what there is, once.
func (l *FramedLink[Out, In]) receive(b []byte) (int, error) {
	s := &l.spin
	if s.state == sleeping {
		return l.conn.Read(b)
	}
	s.state, s.began, s.buf, s.n, s.err = spinning, time.Now(), b, 0, nil
	err := s.raw.Read(s.look)
	s.state, s.exclusive, s.buf = sleeping, nil, nil
	if err == nil {
		err = s.err
	}
	if s.n == 0 && err == nil {
		err = io.EOF
	}
	return s.n, err
}

// look reads until something has come, or until the goroutine is to be parked. Between two reads
// other programs may have the processor: one of them may be the one that is waited for.
func (s *spinRead) look(fd uintptr) (done bool) {
	s.state = spinning
	for s.state == spinning {
		n, err := syscall.Read(int(fd), s.buf)
		switch {
		case err == syscall.EINTR:
		case err != syscall.EAGAIN:
			s.n, s.err, s.state = max(n, 0), err, sleeping
		case time.Since(s.began) >= spinTime || !s.exclusive():
			s.state = parked
		default:
			_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
		}
	}
	return s.state == sleeping
}
