package shell

import "strings"

// A name of a file can stand within the text of a command that another command makes:
//
//	find . -exec sh -c 'wc -l {}' \;    for f in *.go; do bash -c "rm '$f'"; done
//
// The text is read with a mark in the name's place, which is a part of a word to the parser, in quotes or not: the
// pattern in digits that no text has, or no digits for an unknown part. A name is taken to be one word, without a
// meaning for the shell.
const (
	markBegin = "\x01"
	markEnd   = "\x02"
	digitZero = 0x10 // of sixteen
)

func (w word) isPlain() bool { return !w.loose && w.glob < 0 }

// source returns a word as the text of a command.
func (w word) source() string {
	switch {
	case w.isPlain():
		return w.text
	case w.marked != "":
		return w.marked
	case w.loose:
		return markBegin + markEnd
	}
	digits := make([]byte, 0, 2*len(w.text))
	for _, c := range []byte(w.text) {
		digits = append(digits, digitZero+c>>4, digitZero+c&15)
	}
	return markBegin + string(digits) + markEnd
}

// marked returns the word of a mark; ok is false if the digits are none.
func marked(digits string) (w word, ok bool) {
	text := make([]byte, 0, len(digits)/2)
	for i, c := range []byte(digits) {
		switch {
		case c < digitZero || c > digitZero+15:
			return w, false
		case i%2 == 1:
			text = append(text, (digits[i-1]-digitZero)<<4|(c-digitZero))
		}
	}
	if len(text) == 0 {
		return word{loose: true, glob: -1}, true
	}
	return word{text: string(text), glob: max(strings.IndexAny(string(text), "*?["), 0)}, true
}

// maxMarks bounds the marks of a word.
const maxMarks = 256

// mark keeps what a word is as the text of a command, before another word is joined to it.
func (w *word) mark(other word) {
	if w.isPlain() && other.isPlain() {
		return
	}
	for _, one := range []*word{w, &other} {
		if !one.isPlain() {
			one.marks = max(one.marks, 1)
		}
	}
	text := w.source() + other.source()
	if w.marks += other.marks; w.marks > maxMarks {
		w.loose, text = true, ""
	}
	w.marked = text
}

// ofText returns the word that a text with marks stands for, where no shell reads it.
func ofText(text string) word {
	var b builder
	b.add(literal(""))
	b.addText(text, literal)
	return b.now
}

// addText appends a text that may have marks; plain is what the rest is read by.
func (b *builder) addText(text string, plain func(string) word) {
	for {
		before, rest, ok := strings.Cut(text, markBegin)
		digits, after, closed := strings.Cut(rest, markEnd)
		w, is := marked(digits)
		if !ok || !closed || !is {
			b.add(plain(text))
			return
		}
		if before != "" {
			b.add(plain(before))
		}
		b.add(w)
		if text = after; text == "" {
			return
		}
	}
}
