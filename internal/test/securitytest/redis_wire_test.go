package securitytest

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/busy"
)

// wire is a connection to the Redis port.
type wire struct {
	t    *testing.T
	s    *site
	conn net.Conn
	in   *bufio.Reader
}

// wire opens a connection, with a credential unless it is "".
func (s *site) wire(t *testing.T, user, credential string) *wire {
	t.Helper()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: busy.Patience()}, "tcp", s.server.RESP, s.tls())
	if err != nil {
		t.Fatal(err)
	}
	return s.wireOver(t, conn, user, credential)
}

func (s *site) wireOver(t *testing.T, conn net.Conn, user, credential string) *wire {
	t.Helper()
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(busy.Patience()))
	w := &wire{t: t, s: s, conn: conn, in: bufio.NewReader(conn)}
	if credential != "" {
		w.want("+OK", "AUTH", user, credential)
	}
	return w
}

// respCommand is a command as clients send it.
func respCommand(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b.String()
}

// do sends a command and returns its answer: its sign and its value, nil, or [..] for a list. It is "closed"
// where the connection ends instead.
func (w *wire) do(words ...string) string {
	w.t.Helper()
	if _, err := io.WriteString(w.conn, respCommand(words...)); err != nil {
		return "closed"
	}
	return w.answer()
}

func (w *wire) answer() string {
	w.t.Helper()
	text, err := readReply(w.in)
	if timedOut(err) {
		w.t.Fatal(err)
	}
	if err != nil {
		return "closed"
	}
	fmt.Fprintf(w.s.said, "redis: %s\n", text)
	return text
}

func readReply(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	if line = strings.TrimSuffix(line, "\r\n"); line == "" {
		return "", fmt.Errorf("an empty line in place of an answer")
	}
	switch n, _ := strconv.Atoi(line[1:]); line[0] {
	case '_':
		return "nil", nil
	case '$':
		if n < 0 {
			return "nil", nil
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(in, b); err != nil {
			return "", err
		}
		return "$" + string(b[:n]), nil
	case '*', '%':
		if line[0] == '%' {
			n *= 2
		}
		list := make([]string, n)
		for i := range list {
			if list[i], err = readReply(in); err != nil {
				return "", err
			}
		}
		return "[" + strings.Join(list, " ") + "]", nil
	}
	return line, nil
}

// want checks that an answer begins so.
func (w *wire) want(want string, words ...string) {
	w.t.Helper()
	if got := w.do(words...); !strings.HasPrefix(got, want) {
		w.t.Errorf("%.100q: %q, want %s", words, got, want)
	}
}

// ends sends bytes, and checks that the answer is an error of the protocol and the end.
func (w *wire) ends(what, bytes string) {
	w.t.Helper()
	go func() { _, _ = io.WriteString(w.conn, bytes) }()
	switch got := w.answer(); {
	case got == "closed":
		return // the rest of the bytes had not been read when the server closed
	case !strings.HasPrefix(got, "-ERR Protocol error: "):
		w.t.Errorf("%s: %.200q", what, got)
	}
	if got := w.answer(); got != "closed" {
		w.t.Errorf("%s: after the error %.200q", what, got)
	}
}

// scripts are the texts of all libraries that the port knows.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(root + "/resp/script/testdata/kinds/*.lua")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[strings.TrimSuffix(filepath.Base(file), ".lua")] = string(text)
	}
	return texts
}

// aCommand is one in the answer to COMMAND: its name and its arity.
var aCommand = regexp.MustCompile(`\[\$(\S+) :(-?\d+) `)

// respCommands are those that the port answers, each with as many arguments as it needs at least.
func respCommands(t *testing.T, w *wire) (list [][]string) {
	t.Helper()
	for _, m := range aCommand.FindAllStringSubmatch(w.do("COMMAND"), -1) {
		n, _ := strconv.Atoi(m[2])
		list = append(list, append([]string{strings.ToUpper(m[1])}, slices.Repeat([]string{"1"}, max(n, -n)-1)...))
	}
	if len(list) < 25 {
		t.Fatalf("the port has %d commands", len(list))
	}
	return list
}
