package top

import (
	"io"
	"unicode/utf8"
)

// sequences are what terminals send for keys that are no characters, without the escape before it.
var sequences = map[string]string{
	"[A": keyUp, "[B": keyDown, "OA": keyUp, "OB": keyDown, "[5~": keyPageUp, "[6~": keyPageDown,
	"[H": keyHome, "OH": keyHome, "[1~": keyHome, "[F": keyEnd, "OF": keyEnd, "[4~": keyEnd,
}

// controls are the control characters that are keys.
var controls = map[byte]string{
	'\r': keyEnter, '\n': keyEnter, 0x1b: keyEscape, 0x7f: keyBackspace, '\b': keyBackspace, 0x03: keyInterrupt,
	0x04: keyInterrupt, 0x15: keyErase, 0x0e: keyDown, 0x10: keyUp, 0x06: keyPageDown, 0x02: keyPageUp,
}

// readKeys passes on what is typed until there is no more. The end of the input is an interrupt.
func readKeys(in io.Reader, keys chan<- string, done <-chan struct{}) {
	buf := make([]byte, 256)
	kept := 0 // bytes of a character that has not come whole
	for {
		n, err := in.Read(buf[kept:])
		list, rest := keysOf(buf[:kept+n])
		kept = copy(buf, rest)
		if err != nil {
			list = append(list, keyInterrupt)
		}
		for _, key := range list {
			select {
			case keys <- key:
			case <-done:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// keysOf returns the keys of the bytes that a terminal sent at once, and the beginning of a character at its end.
func keysOf(b []byte) (keys []string, rest []byte) {
	for len(b) > 0 {
		if b[0] == 0x1b && len(b) > 1 && (b[1] == '[' || b[1] == 'O') {
			end := 2
			for end < len(b) && (b[end] < 0x40 || b[end] > 0x7e) {
				end++
			}
			end = min(end+1, len(b))
			if key, known := sequences[string(b[1:end])]; known {
				keys = append(keys, key)
			}
			b = b[end:]
			continue
		}
		if b[0] < ' ' || b[0] == 0x7f {
			if key, known := controls[b[0]]; known {
				keys = append(keys, key)
			}
			b = b[1:]
			continue
		}
		if !utf8.FullRune(b) {
			return keys, b
		}
		r, n := utf8.DecodeRune(b)
		if r != utf8.RuneError {
			keys = append(keys, string(r))
		}
		b = b[n:]
	}
	return keys, nil
}
