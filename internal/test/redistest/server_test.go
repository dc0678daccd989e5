//go:build unix

package redistest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// binaryVariable names the interlock program to a redis-server.
const binaryVariable = "INTERLOCK_REDISTEST_BINARY"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "redis-server" {
		if err := serveAsRedis(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := isolate(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	launchtest.Main(m)
}

// redisServer returns a folder with a program redis-server, which is this test and starts interlock.
func redisServer(t *testing.T) string {
	t.Helper()
	t.Setenv(binaryVariable, launchtest.Binary(t))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Symlink(self, filepath.Join(folder, "redis-server")); err != nil {
		t.Fatal(err)
	}
	return folder
}

// serveAsRedis reads a configuration of Redis from standard input, as "redis-server -" does, and serves at
// its socket until a signal.
func serveAsRedis() error {
	socket, dir, port := "", "", "0"
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch name, value, _ := strings.Cut(lines.Text(), " "); name {
		case "unixsocket":
			socket = value
		case "dir":
			dir = value
		case "port":
			port = value
		}
	}
	if dir == "" {
		dir = filepath.Dir(socket)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	cmd := exec.Command(
		os.Getenv(binaryVariable), "serve", "--data-dir", filepath.Join(dir, "interlock"), "--http", "127.0.0.1:0",
		"--grpc", "127.0.0.1:0", "--resp", "127.0.0.1:"+port, "--resp-test", "--log-level", "error",
	)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	var api, stream, address string
	if _, err := fmt.Fscanf(out, "ready http=%s grpc=%s resp=%s", &api, &stream, &address); err != nil {
		return err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go forward(near, address)
		}
	}()
	fmt.Println("Ready to accept connections")
	<-signals
	return nil
}

// forward connects a client of the socket with the door.
func forward(near net.Conn, address string) {
	defer near.Close()
	far, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer far.Close()
	go func() {
		_, _ = io.Copy(far, near)
		_ = far.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(near, far)
}
