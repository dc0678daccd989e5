package proto

import (
	"io"
	"runtime"
	"syscall"
	"time"
)

// awake is for how long a side that attends does not sleep: about as long as it takes to
// wake a processor that does. So what comes soon is read that much earlier, and what comes
// later has cost at most twice as much.
const awake = 60 * time.Microsecond

// attention is what a link needs to wait without sleeping.
type attention struct {
	raw   syscall.RawConn
	alone func() bool // not nil: the next read attends
	began time.Time
	into  []byte
	got   int
	err   error
}

// Attend implements [SpinReader].
func (l *FramedLink[Out, In]) Attend(alone func() bool) {
	a := &l.attention
	if a.raw == nil {
		plain, ok := l.conn.(syscall.Conn)
		if !ok {
			return
		}
		raw, err := plain.SyscallConn()
		if err != nil {
			return
		}
		a.raw = raw
	}
	if runtime.GOMAXPROCS(0) > 1 { // else it would keep all others from working
		a.alone = alone
	}
}

// receive reads what there is, once.
func (l *FramedLink[Out, In]) receive(b []byte) (int, error) {
	a := &l.attention
	if a.alone == nil {
		return l.conn.Read(b)
	}
	a.began, a.into, a.got, a.err = time.Now(), b, 0, nil
	err := a.raw.Read(a.look)
	a.alone, a.into = nil, nil
	if err == nil {
		err = a.err
	}
	if a.got == 0 && err == nil {
		err = io.EOF
	}
	return a.got, err
}

// look tries to read until something has come, or it is time to sleep. Other programs may
// have the processor meanwhile: one of them may be the one that is waited for.
func (a *attention) look(fd uintptr) (done bool) {
	for {
		n, err := syscall.Read(int(fd), a.into)
		switch {
		case err == syscall.EINTR:
		case err != syscall.EAGAIN:
			a.got, a.err = max(n, 0), err
			return true
		case time.Since(a.began) >= awake || !a.alone():
			return false
		default:
			_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
		}
	}
}
