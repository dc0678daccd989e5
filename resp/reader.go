package resp

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// limits bound what one command may be.
type limits struct {
	args  int // number of arguments
	arg   int // bytes of one
	bytes int // bytes of the whole command
}

var (
	// knownLimits are those of a client with a proven credential, or at a server that asks for none.
	knownLimits = limits{args: 64, arg: 64 << 10, bytes: 1 << 20}
	// strangerLimits are those of one that still has to send AUTH.
	strangerLimits = limits{args: 16, arg: 4 << 10, bytes: 16 << 10}
)

// maxLine is the longest line: the number of arguments, the size of one, or a whole command of one line.
const maxLine = 4 << 10

// errWebPage means that a client speaks HTTP: a page of another site that a browser shows can make it
// send such bytes to a port of this machine.
var errWebPage = errors.New("this port speaks the Redis protocol and no HTTP; the HTTP API is at --http")

// errTLS means that a client begins TLS.
var errTLS = errors.New("this port does not speak TLS: set --tls-cert and --tls-key, or use redis://")

// parse reads the first command in b. args are slices of b, and n is its length; n is 0 if b does not
// have all of it. A command without arguments means nothing. want is how many bytes an incomplete one
// will have at least. An error ends the connection.
func parse(b []byte, l limits) (args [][]byte, n, want int, err error) {
	if len(b) == 0 {
		return nil, 0, 1, nil
	}
	if b[0] == 0x16 {
		return nil, 0, 0, errTLS
	}
	if b[0] != '*' {
		return parseLine(b, l)
	}
	count, at, err := header(b, '*', 0, l.args)
	if err != nil {
		return nil, 0, 0, fmt.Errorf("invalid number of arguments: %w", err)
	}
	if at == 0 {
		return nil, 0, len(b) + 1, nil
	}
	for range count {
		size, begin, err := header(b, '$', at, l.arg)
		if err != nil {
			return nil, 0, 0, fmt.Errorf("invalid length of an argument: %w", err)
		}
		if begin == 0 {
			return nil, 0, len(b) + 1, nil
		}
		if size < 0 {
			return nil, 0, 0, errors.New("an argument cannot be null")
		}
		end := begin + size
		if end+2 > l.bytes {
			return nil, 0, 0, fmt.Errorf("a command may have %d bytes", l.bytes)
		}
		if len(b) < end+2 {
			return nil, 0, end + 2, nil
		}
		if b[end] != '\r' || b[end+1] != '\n' {
			return nil, 0, 0, errors.New("an argument is longer than announced")
		}
		args = append(args, b[begin:end:end])
		at = end + 2
	}
	return args, at, 0, nil
}

// header reads a number behind a sign at b[at:]. next is 0 if its line is not complete. A negative number
// is -1, and stands for nothing.
func header(b []byte, sign byte, at, most int) (number, next int, err error) {
	if at >= len(b) {
		return 0, 0, nil
	}
	if b[at] != sign {
		return 0, 0, fmt.Errorf("expected '%c', got %q", sign, b[at])
	}
	rest := b[at+1 : min(len(b), at+1+maxNumber)]
	end := bytes.IndexByte(rest, '\n')
	if end < 0 {
		if len(rest) == maxNumber {
			return 0, 0, errors.New("too many digits")
		}
		return 0, 0, nil
	}
	if end == 0 || rest[end-1] != '\r' {
		return 0, 0, errors.New("a line ends with CR LF")
	}
	digits := string(rest[:end-1])
	number, err = strconv.Atoi(digits)
	if err != nil || digits[0] == '+' {
		return 0, 0, fmt.Errorf("no number: %q", digits)
	}
	if number > most {
		return 0, 0, fmt.Errorf("%d, and the maximum is %d", number, most)
	}
	return max(number, -1), at + 1 + end + 1, nil
}

// maxNumber is the longest number with the end of its line.
const maxNumber = 20

// parseLine reads a command of one line: words between blanks, or in quotes.
func parseLine(b []byte, l limits) (args [][]byte, n, want int, err error) {
	end := bytes.IndexByte(b[:min(len(b), maxLine)], '\n')
	if end < 0 {
		if len(b) >= maxLine {
			return nil, 0, 0, errors.New("too big inline request")
		}
		return nil, 0, len(b) + 1, nil
	}
	line := bytes.TrimSuffix(b[:end], []byte("\r"))
	for {
		line = bytes.TrimLeft(line, " \t")
		if len(line) == 0 {
			break
		}
		if len(args) == l.args {
			return nil, 0, 0, fmt.Errorf("more than %d arguments", l.args)
		}
		var word []byte
		if quote := line[0]; quote == '"' || quote == '\'' {
			close := bytes.IndexByte(line[1:], quote)
			if close < 0 || close+2 < len(line) && line[close+2] != ' ' && line[close+2] != '\t' {
				return nil, 0, 0, errors.New("unbalanced quotes in request")
			}
			word, line = line[1:close+1], line[close+2:]
		} else {
			blank := bytes.IndexAny(line, " \t")
			if blank < 0 {
				blank = len(line)
			}
			word, line = line[:blank], line[blank:]
		}
		args = append(args, word)
	}
	if n := len(args); n > 0 {
		if bytes.HasPrefix(args[n-1], []byte("HTTP/")) || bytes.EqualFold(args[0], []byte("Host:")) {
			return nil, 0, 0, errWebPage
		}
	}
	return args, end + 1, 0, nil
}
