package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/interlockdev/interlock/internal/filelock"
)

const (
	// seats bounds the processes of one agent's program that are alike.
	seats = 32
	// seatLives is how long after its process a seat can be taken over: as long as the process's leases live.
	seatLives = 35 * time.Second
	// seatKept is how long files of processes that were killed stay.
	seatKept = 24 * time.Hour
)

// seat is the place of this process among those that one agent's program starts alike: with the same server, namespace,
// folder and name. It is a locked file with the key of the conversation. A process that is killed leaves the file,
// without the lock; the one that its program starts instead takes it, and with it the conversation and its leases. A
// process that lives has its lock, so no two agents share a seat.
type seat struct {
	file    *os.File
	key     string
	resumed bool // of a process that was killed
}

// takeSeat takes a seat in a folder; nil if there is none. alike is what processes of the same agent have in common.
func takeSeat(folder string, alike ...string) *seat {
	if os.MkdirAll(folder, 0o700) != nil {
		return nil
	}
	sweepSeats(folder)
	name := fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(alike, "\x00"))))[:32]
	for i := range seats {
		file, err := os.OpenFile(filepath.Join(folder, fmt.Sprintf("%s-%d", name, i)), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil
		}
		if held, err := filelock.Try(file); err != nil || held {
			_ = file.Close()
			continue
		}
		s := &seat{file: file}
		if info, err := file.Stat(); err == nil && time.Since(info.ModTime()) < seatLives {
			text, _ := io.ReadAll(io.LimitReader(file, 64))
			s.key = string(text)
		}
		if s.resumed = len(s.key) == len(rand.Text()); !s.resumed {
			s.key = rand.Text()
		}
		if _, err := file.WriteAt([]byte(s.key), 0); err != nil || s.touch() != nil {
			_ = file.Close()
			return nil
		}
		return s
	}
	return nil
}

// touch notes that the process lives.
func (s *seat) touch() error { return os.Chtimes(s.file.Name(), time.Time{}, time.Now()) }

// keep notes now and then that the process lives.
func (s *seat) keep(ctx context.Context) {
	tick := time.NewTicker(seatLives / 5)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = s.touch()
		}
	}
}

// leave leaves the seat: nothing is left to take over.
func (s *seat) leave() {
	_ = s.file.Truncate(0)
	_ = os.Remove(s.file.Name())
	_ = s.file.Close()
}

// sweepSeats removes what killed processes have left.
func sweepSeats(folder string) {
	list, _ := os.ReadDir(folder)
	for _, one := range list {
		if info, err := one.Info(); err == nil && time.Since(info.ModTime()) > seatKept {
			_ = os.Remove(filepath.Join(folder, one.Name()))
		}
	}
}
