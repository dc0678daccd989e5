package server

import (
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// jsonOut appends JSON to a buffer. It is written by hand because two answers a lease cycle are
// most of the HTTP API's work, and because it leaves one place through which agents' text can
// go out: text. A comma is due before a name or an element unless it is the first, which the
// last byte shows: no value ends with an opening brace, a line break, or the space that stands
// before the data of an event.
type jsonOut struct{ b []byte }

var jsonOuts = sync.Pool{New: func() any { return &jsonOut{b: make([]byte, 0, 2048)} }}

func newJSON() *jsonOut { return jsonOuts.Get().(*jsonOut) }

// free takes the buffer back, unless an unusual answer made it large.
func (j *jsonOut) free() {
	if cap(j.b) <= 64<<10 {
		j.b = j.b[:0]
		jsonOuts.Put(j)
	}
}

func (j *jsonOut) comma() {
	if n := len(j.b); n > 0 {
		if c := j.b[n-1]; c != '{' && c != '[' && c != '\n' && c != ' ' {
			j.b = append(j.b, ',')
		}
	}
}

// name begins a member. An empty name is for elements of an array.
func (j *jsonOut) name(name string) {
	j.comma()
	if name != "" {
		j.b = append(j.b, '"')
		j.b = append(j.b, name...)
		j.b = append(j.b, '"', ':')
	}
}

func (j *jsonOut) open(name string) {
	j.name(name)
	j.b = append(j.b, '{')
}

func (j *jsonOut) close() { j.b = append(j.b, '}') }

func (j *jsonOut) openArray(name string) {
	j.name(name)
	j.b = append(j.b, '[')
}

func (j *jsonOut) closeArray() { j.b = append(j.b, ']') }

// str is for our own words, keys and ids.
func (j *jsonOut) str(name, value string) {
	j.name(name)
	j.b = appendJSONString(j.b, value)
}

// text is for the text of agents and people, on one line.
func (j *jsonOut) text(name, value string) { j.str(name, cleanText(value)) }

// note is for agents' longer text, which may have lines.
func (j *jsonOut) note(name, value string) { j.str(name, cleanNote(value)) }

func (j *jsonOut) int(name string, value int64) {
	j.name(name)
	j.b = strconv.AppendInt(j.b, value, 10)
}

// ms is a duration in milliseconds, rounded up so that what is left never looks
// like nothing.
func (j *jsonOut) ms(name string, d time.Duration) {
	ms := d / time.Millisecond
	if d > 0 && d%time.Millisecond != 0 {
		ms++
	}
	j.int(name, int64(ms))
}

// duration is ms, left out when there is none.
func (j *jsonOut) duration(name string, d time.Duration) {
	if d > 0 {
		j.ms(name, d)
	}
}

// count is a number that is left out when it is zero.
func (j *jsonOut) count(name string, n uint64) {
	if n != 0 {
		j.name(name)
		j.b = strconv.AppendUint(j.b, n, 10)
	}
}

// said is text, left out when it is empty.
func (j *jsonOut) said(name, value string) {
	if value != "" {
		j.text(name, value)
	}
}

// decimal is a counter: a string, because JSON numbers lose precision above 2^53.
func (j *jsonOut) decimal(name string, value uint64) {
	j.name(name)
	j.b = append(j.b, '"')
	j.b = strconv.AppendUint(j.b, value, 10)
	j.b = append(j.b, '"')
}

func (j *jsonOut) bool(name string, value bool) {
	j.name(name)
	j.b = strconv.AppendBool(j.b, value)
}

func (j *jsonOut) at(at interlock.At) {
	j.open("at")
	j.int("shard", int64(at.Shard))
	j.decimal("epoch", uint64(at.Epoch))
	j.decimal("index", uint64(at.Index))
	j.close()
}

// serverTime is for people and logs; nothing should be computed from it.
func (j *jsonOut) serverTime() { j.timestamp("server_time", time.Now()) }

func (j *jsonOut) timestamp(name string, t time.Time) {
	j.name(name)
	j.b = append(j.b, '"')
	j.b = t.UTC().AppendFormat(j.b, "2006-01-02T15:04:05.000Z")
	j.b = append(j.b, '"')
}

// moment is a timestamp of the journal.
func (j *jsonOut) moment(name string, t record.Time) { j.timestamp(name, time.Unix(0, int64(t))) }

const hexDigits = "0123456789abcdef"

// appendJSONString quotes s. Invalid UTF-8 becomes U+FFFD; '<', '>' and '&' are escaped, so
// that an answer is harmless inside a page as well.
func appendJSONString[text string | []byte](b []byte, s text) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&' && c != 0x7f {
				i++
				continue
			}
			b = append(b, s[start:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		if r == utf8.RuneError && size == 1 || r == '\u2028' || r == '\u2029' {
			b = append(b, s[start:i]...)
			b = append(b, '\\', 'u', hexDigits[r>>12], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
			start = i + size
		}
		i += size
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}
