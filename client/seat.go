package client

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/filelock"
)

// seat is the file of Config.Seat, with the id of the session. Its lock proves that the process of the session before
// is dead: the operating system releases it when a process ends, whatever kills that.
type seat struct {
	file   *os.File
	before interlock.SessionID // of the process before; zero if that ended by Close
}

// takeSeat takes a seat; nil if there is no path.
func takeSeat(path string) (*seat, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("client: the seat: %w", err)
	}
	held, err := filelock.Try(file)
	if held {
		err = fmt.Errorf("client: a process that still runs has the seat %s: end it first, or use another seat", path)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() { // such as a pipe, and reading one waits
		err = fmt.Errorf("client: the seat %s is no file", path)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		_ = file.Close()
		return nil, fmt.Errorf("client: others may read or write the seat %s, which has a secret: chmod 600 it", path)
	}
	s := &seat{file: file}
	if text, err := io.ReadAll(io.LimitReader(file, 64)); err == nil {
		s.before, _ = interlock.ParseSessionID(string(text)) // what is no id names no session
	}
	return s, nil
}

// note replaces the session in the file.
func (s *seat) note(id interlock.SessionID) error {
	if s == nil {
		return nil
	}
	if _, err := s.file.WriteAt([]byte(id.String()), 0); err != nil {
		return fmt.Errorf("client: the seat: %w", err)
	}
	return nil
}

// leave releases the seat. If the session has ended, there is nothing to be taken over.
func (s *seat) leave(ended bool) {
	if s == nil {
		return
	}
	if ended {
		_ = s.file.Truncate(0) // else the next process asks for leases that there are no more
	}
	_ = s.file.Close()
}

// predecessor returns the session of the process before, for its leases to be taken over; zero for none.
func (c *Client) predecessor() interlock.SessionID {
	if c.seat == nil {
		return interlock.SessionID{}
	}
	return c.seat.before
}
