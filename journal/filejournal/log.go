package filejournal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// segment is a file of the log, as described by its name.
type segment struct {
	name  string
	first interlock.Index
}

// segments lists the segments among names in order.
func segments(names []string) []segment {
	var out []segment
	for _, name := range names {
		if first, ok := nameIndex(name, logSuffix); ok {
			out = append(out, segment{name, first})
		}
	}
	slices.SortFunc(out, func(a, b segment) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	return out
}

// since drops the segments that end before from.
func since(segs []segment, from interlock.Index) []segment {
	for len(segs) > 1 && segs[1].first <= from {
		segs = segs[1:]
	}
	return segs
}

// walker reads a log in order and checks everything that it passes.
type walker struct {
	dir  directory
	path string // of the directory, for messages

	// live means that a server may be writing meanwhile. A damaged part of the last segment is
	// then read once more, because it may have been half written.
	live bool
	// until makes the walk end there; 0 means at the end of the log.
	until interlock.Index

	// Where the walk is.
	at     position
	header segmentHeader
	off    int64 // behind the last good frame of the segment
	start  int64 // of the last good frame of the segment, or 0
	torn   int64 // end of the non-zero data behind off, or 0
	bytes  int64 // of all segments so far
	win    window
}

// walk visits every frame of segs, which are the last ones of the log, and leaves
// the walker at its end. It returns visit's error, or what is wrong.
func (w *walker) walk(ctx context.Context, segs []segment, visit func(frameHeader, []byte) error) error {
	for i := range segs {
		if err := w.segment(ctx, segs, i, visit); err != nil {
			return err
		}
		if w.done() {
			break
		}
	}
	return nil
}

func (w *walker) done() bool { return w.until != 0 && w.at.index >= w.until }

func (w *walker) damage(name string, off int64, reason string) error {
	return &journal.DamageError{File: filepath.Join(w.path, name), Offset: off, Index: w.at.index, Reason: reason}
}

func (w *walker) segment(ctx context.Context, segs []segment, i int, visit func(frameHeader, []byte) error) error {
	seg, last := segs[i], i == len(segs)-1
	f, err := w.dir.Open(seg.name, os.O_RDONLY)
	if err != nil {
		return failedOpening(err)
	}
	defer f.Close()
	if err := w.begin(f, seg, i == 0); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, body, v, err := w.next()
		if err != nil {
			return err
		}
		if v.is == good {
			if err := visit(h, body); err != nil {
				return err
			}
			w.start, w.off = w.off, w.off+frameLength(len(body))
			w.at = h.after()
			if w.done() {
				return nil
			}
			continue
		}
		if v.is == damaged || v.is == unfinished && (!last || w.until != 0) {
			return w.damage(seg.name, w.off, v.reason)
		}
		if !last {
			if next := segs[i+1].first; w.at.index+1 != next {
				return w.damage(seg.name, w.off, fmt.Sprintf("the segment ends here, but the next one begins with index %d", next))
			}
			return nil
		}
		if w.until != 0 {
			return w.damage(seg.name, w.off, fmt.Sprintf("the log ends here, but index %d was written", w.until))
		}
		follows, err := w.lookAhead()
		if err != nil {
			return err
		}
		if follows == 0 {
			return nil
		}
		if w.live {
			// The following frames were written after the frame here, so by now the frame here
			// can be read as a whole, unless it is damaged.
			w.win.forget()
			if _, _, again, err := w.next(); err != nil || again.is == good {
				continue
			}
		}
		return w.damage(seg.name, w.off, fmt.Sprintf("%s, but a later write stands at byte %d", v.reason, follows))
	}
}

// begin reads the segment's header and checks that it continues the log.
func (w *walker) begin(f file, seg segment, isFirst bool) error {
	size, err := f.Size()
	if err != nil {
		return fmt.Errorf("%w: %w", journal.ErrFailed, err)
	}
	w.win.f, w.win.name, w.win.size = f, seg.name, size
	w.win.forget()
	b, err := w.win.at(0, segmentHeaderSize)
	if err != nil {
		return err
	}
	h, err := decodeSegmentHeader(b)
	if isNewer(err) {
		return fmt.Errorf("%s: %w", filepath.Join(w.path, seg.name), err)
	}
	if err != nil {
		return w.damage(seg.name, 0, err.Error())
	}
	if isFirst {
		w.at = position{h.first - 1, h.epoch, h.prev}
	}
	switch {
	case h.first != seg.first:
		return w.damage(seg.name, 16, fmt.Sprintf("the file's name is not that of its first index %d", h.first))
	case size != h.capacity:
		return w.damage(seg.name, 32, fmt.Sprintf("the file has %d bytes, %d were allocated", size, h.capacity))
	case w.at != position{h.first - 1, h.epoch, h.prev}:
		return w.damage(seg.name, 16, "the segment does not continue the one before")
	}
	w.at.chain = h.crc
	w.header, w.off, w.start, w.torn = h, segmentHeaderSize, 0, 0
	w.bytes += h.capacity
	return nil
}

// verdict is the kind of data at a place.
type verdict struct {
	is     int
	reason string
}

const (
	good       = iota
	nothing    // zeros, or no room for a frame
	unfinished // no frame; it could be the torn write of a crash
	damaged    // cannot be the torn write of a crash
)

// next looks at the frame at w.off and moves nothing.
func (w *walker) next() (frameHeader, []byte, verdict, error) {
	room := w.header.capacity - w.off
	if room < frameHeaderSize {
		return frameHeader{}, nil, verdict{nothing, "zeros"}, nil
	}
	b, err := w.win.at(w.off, frameHeaderSize)
	if err != nil {
		return frameHeader{}, nil, verdict{}, err
	}
	h, ok := decodeFrameHeader(b, w.header.salt)
	if !ok {
		if allZero(b) {
			return h, nil, verdict{nothing, "zeros"}, nil
		}
		return h, nil, verdict{unfinished, "checksum of the frame's header"}, nil
	}
	if reason := h.continues(w.at); reason != "" {
		return h, nil, verdict{damaged, reason}, nil
	}
	if frameLength(int(h.size)) > room {
		return h, nil, verdict{damaged, "the frame is longer than its segment"}, nil
	}
	b, err = w.win.at(w.off, frameHeaderSize+int(h.size))
	if err != nil {
		return h, nil, verdict{}, err
	}
	if len(b) < frameHeaderSize+int(h.size) {
		return h, nil, verdict{damaged, "the file ends within the frame"}, nil
	}
	switch err := h.checkBody(b[frameHeaderSize:]); err {
	case nil:
		return h, b[frameHeaderSize:], verdict{is: good}, nil
	case errBodyChecksum:
		return h, nil, verdict{unfinished, err.Error()}, nil
	default:
		return h, nil, verdict{damaged, err.Error()}, nil
	}
}

// lookAhead searches the rest of the segment for a frame header that checks. One write at most
// is in flight at a crash, so behind a torn frame there can be no other. It returns the place
// of the frame, or 0, and records how far the rest is not zero.
func (w *walker) lookAhead() (follows int64, err error) {
	w.torn = 0
	w.win.forget()
	const step = windowSize / 2
	for from := w.off; from < w.header.capacity; from += step {
		b, err := w.win.at(from, int(min(step+frameHeaderSize, w.header.capacity-from)))
		if err != nil {
			return 0, err
		}
		for i := 0; i < len(b) && i < step; i += frameAlign {
			if page := b[i:min(i+4096, len(b))]; i%4096 == 0 && allZero(page) {
				i += 4096 - frameAlign
				continue
			}
			word := b[i:min(i+frameAlign, len(b))]
			if allZero(word) {
				continue
			}
			w.torn = from + int64(i+len(word))
			if from+int64(i) == w.off {
				continue // the unfinished frame itself
			}
			if _, ok := decodeFrameHeader(b[i:], w.header.salt); ok {
				return from + int64(i), nil
			}
		}
	}
	return 0, nil
}

func allZero(b []byte) bool {
	for len(b) >= 8 {
		if order.Uint64(b) != 0 {
			return false
		}
		b = b[8:]
	}
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

func isNewer(err error) bool { return errors.Is(err, journal.ErrNewer) }

// failedOpening keeps "not there" apart from a failing disk.
func failedOpening(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrClosed) {
		return err
	}
	if noFiles(err) {
		return fmt.Errorf("%w: %w", journal.ErrNoFiles, err)
	}
	return fmt.Errorf("%w: %w", journal.ErrFailed, err)
}
