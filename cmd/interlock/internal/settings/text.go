package settings

import (
	"bytes"
	"strings"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// The marks around the part of a text that is ours. They are comments of Markdown.
const (
	begin = "<!-- interlock: begin -->"
	end   = "<!-- interlock: end -->"
)

// SetPart sets the part of a text between the marks, "" for none. The rest keeps its bytes: what a
// SetPart has added to a text, a SetPart with "" removes.
func SetPart(name string, text []byte, part string) ([]byte, error) {
	newline := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		newline = "\r\n"
	}
	block := ""
	if part != "" {
		block = begin + "\n" + strings.TrimSpace(part) + "\n" + end
		block = strings.ReplaceAll(block, "\n", newline)
	}
	whole := string(text)
	switch first, last := strings.Index(whole, begin), strings.LastIndex(whole, end); {
	case strings.Count(whole, begin) > 1 || strings.Count(whole, end) > 1 || (first < 0) != (last < 0) || last < first:
		return nil, cli.Usagef("%s has a mark %q without its other one: remove it first", cli.Clean(name), begin)
	case first < 0 && block == "":
		return text, nil
	case first < 0:
		// A blank line before the part and none behind it, whatever the end of the text is.
		switch {
		case whole == "":
			return []byte(block + newline), nil
		case strings.HasSuffix(whole, newline):
			return []byte(whole + newline + block + newline), nil
		}
		return []byte(whole + newline + newline + block), nil
	case block != "":
		return []byte(whole[:first] + block + whole[last+len(end):]), nil
	default:
		before, after := whole[:first], whole[last+len(end):]
		switch {
		case strings.HasSuffix(before, newline+newline) && after == newline:
			before, after = strings.TrimSuffix(before, newline), ""
		case strings.HasSuffix(before, newline+newline) && after == "":
			before = strings.TrimSuffix(before, newline+newline)
		default: // a person has moved it
			before = strings.TrimSuffix(before, newline)
			if before == "" {
				after = strings.TrimPrefix(after, newline)
			}
		}
		return []byte(before + after), nil
	}
}
