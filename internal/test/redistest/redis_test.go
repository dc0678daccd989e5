//go:build unix

package redistest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/tools"
)

// TestRedisAnswersSo: a real Redis answers the conversation that the door's own test has with the door in
// the same words.
func TestRedisAnswersSo(t *testing.T) {
	tools.Need(t, "redis-server")
	socket := filepath.Join(t.TempDir(), "redis.sock")
	cmd := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--daemonize", "no")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "eady to accept connections") {
	}
	text, err := os.ReadFile("../../../resp/testdata/forms.txt")
	if err != nil {
		t.Fatal(err)
	}
	clients := map[string]*bufio.ReadWriter{}
	var asked, answer string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		client, command, asks := strings.Cut(line, "> ")
		switch {
		case line == "" || line[0] == '#':
		case !asks:
			if answer != line {
				t.Errorf("%s\n%s\nwant %s", asked, answer, line)
			}
		default:
			if clients[client] == nil {
				conn, err := net.Dial("unix", socket)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				clients[client] = bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
			}
			if asked = line; strings.Contains(line, "INTERLOCK") {
				t.Fatalf("%s is no command of Redis", line)
			}
			answer = ask(t, clients[client], strings.Fields(command))
		}
	}
}

// ask sends a command, with the texts of scripts for their names, and returns the answer.
func ask(t *testing.T, c *bufio.ReadWriter, words []string) string {
	t.Helper()
	fmt.Fprintf(c, "*%d\r\n", len(words))
	for _, word := range words {
		if name, is := strings.CutPrefix(word, "@"); is {
			text, err := os.ReadFile(filepath.Join("../../../resp/script/testdata/kinds", name+".lua"))
			if err != nil {
				t.Fatal(err)
			}
			word = string(text)
		}
		fmt.Fprintf(c, "$%d\r\n%s\r\n", len(word), word)
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	return read(t, c)
}

func read(t *testing.T, c *bufio.ReadWriter) string {
	t.Helper()
	line, err := c.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	line = strings.TrimSuffix(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch {
	case line[0] == '$' && n < 0:
		return "nil"
	case line[0] == '$':
		text, err := c.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return "$" + strings.TrimSuffix(text, "\r\n")
	case line[0] == '*':
		list := make([]string, n)
		for i := range list {
			list[i] = read(t, c)
		}
		return "[" + strings.Join(list, " ") + "]"
	}
	return line
}
