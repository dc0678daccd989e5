package resp

import "strconv"

// writer collects answers in one version of the protocol.
type writer struct {
	b       []byte
	version int // 2 or 3
}

func (w *writer) simple(s string) { w.line('+', s) }

func (w *writer) line(sign byte, s string) {
	w.b = append(append(append(w.b, sign), s...), '\r', '\n')
}

func (w *writer) number(sign byte, n int64) {
	w.b = append(strconv.AppendInt(append(w.b, sign), n, 10), '\r', '\n')
}

func (w *writer) int(n int64) { w.number(':', n) }

func (w *writer) yes(b bool) {
	if b {
		w.int(1)
	} else {
		w.int(0)
	}
}

func (w *writer) bulk(s string) {
	w.number('$', int64(len(s)))
	w.b = append(append(w.b, s...), '\r', '\n')
}

// null is the answer where nothing is.
func (w *writer) null() {
	if w.version == 3 {
		w.b = append(w.b, "_\r\n"...)
	} else {
		w.b = append(w.b, "$-1\r\n"...)
	}
}

func (w *writer) array(n int) { w.number('*', int64(n)) }

// pairs begins a map of n keys and values, which version 2 sends as a list.
func (w *writer) pairs(n int) {
	if w.version == 3 {
		w.number('%', int64(n))
	} else {
		w.array(2 * n)
	}
}

// fail writes an error: its code in capital letters, a blank, and one line of text.
func (w *writer) fail(text string) { w.line('-', text) }
