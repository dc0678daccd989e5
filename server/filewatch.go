package server

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// fileWatch is what was read from files. It is read again when one of them has changed: at the first use after
// checkEvery has passed, so that nothing runs beside what uses it, or at once by Reload.
type fileWatch[T any] struct {
	what   string // it is, for errors
	files  []string
	load   func() (T, error)
	refuse func(inUse T, err error) // is called with the reason why a change is not used
	now    func() time.Time

	mu      sync.Mutex // guards the fields below
	value   T
	stamps  []fileStamp
	checked time.Time
}

// fileStamp tells whether a file is another than before.
type fileStamp struct {
	modified int64 // Unix, in ns
	size     int64
}

// checkEvery bounds how often uses look at the files.
const checkEvery = 10 * time.Second

// Reload reads the files at once. What cannot be used leaves what was there.
func (w *fileWatch[T]) Reload() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reload()
}

func (w *fileWatch[T]) reload() error {
	// The stamps are taken first: what changes while it is read is read again.
	stamps, err := stampsOf(w.files)
	if err != nil {
		return fmt.Errorf("%s: %w", w.what, err)
	}
	value, err := w.load()
	if err != nil {
		return fmt.Errorf("%s: %w", w.what, err)
	}
	w.value, w.stamps, w.checked = value, stamps, w.now()
	return nil
}

// latest returns the value, read anew if a file has changed.
func (w *fileWatch[T]) latest() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.now(); now.Sub(w.checked) >= checkEvery {
		w.checked = now
		stamps, err := stampsOf(w.files)
		if err == nil && !slices.Equal(stamps, w.stamps) {
			err = w.reload()
		}
		if err != nil {
			w.refuse(w.value, err)
		}
	}
	return w.value
}

func stampsOf(files []string) (stamps []fileStamp, err error) {
	for _, name := range files {
		stamp, err := stampOf(name)
		if err != nil {
			return nil, err
		}
		stamps = append(stamps, stamp)
	}
	return stamps, nil
}

func stampOf(name string) (fileStamp, error) {
	info, err := os.Stat(name)
	if err != nil {
		return fileStamp{}, err
	}
	return fileStamp{info.ModTime().UnixNano(), info.Size()}, nil
}
