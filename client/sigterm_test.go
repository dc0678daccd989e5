//go:build unix

package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/test/busy"
)

// SIGTERM ends the context of a worker: its program finishes the task under way, takes no other one, and ends.
func TestWorkerDrainsOnSIGTERM(t *testing.T) {
	if addr := os.Getenv("INTERLOCK_TEST_DRAIN"); addr != "" {
		if err := drain(addr); err != nil {
			t.Fatal(err)
		}
		return
	}
	addr := inMemory(t).listen()
	ctx, cancel := context.WithTimeout(t.Context(), busy.Patience())
	defer cancel()
	c, err := client.Dial(ctx, client.Config{Addrs: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer closeClient(t, c)
	if err := c.SetQueue(ctx, interlock.TaskQueue{Name: "q"}); err != nil {
		t.Fatal(err)
	}
	submit := func() interlock.TaskID {
		task, err := c.Submit(ctx, client.TaskSpec{Queue: "q"})
		if err != nil {
			t.Fatal(err)
		}
		return task.ID
	}
	first := submit()
	cmd, in, lines := startSelf(ctx, t, "INTERLOCK_TEST_DRAIN="+addr)
	expect := func(want string) {
		if lines.Scan(); lines.Text() != want {
			t.Fatalf("the worker printed %q, want %q", lines.Text(), want)
		}
	}
	expect("begun")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	expect("stopping")
	second := submit()
	if err := in.Close(); err != nil { // its handler may return
		t.Fatal(err)
	}
	task, err := c.Await(ctx, first)
	if err != nil || task.State != interlock.TaskDone || string(task.Result) != `"finished"` {
		t.Errorf("the task under way is %+v, %v", task, err)
	}
	for lines.Scan() { // up to its end
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if task, err := c.Task(ctx, second); err != nil || task.State != interlock.TaskWaiting {
		t.Errorf("the task after SIGTERM is %+v, %v", task, err)
	}
}

// startSelf runs this test once more in a process of its own, with variables that tell it what to do there. It returns
// the process's standard input and the lines of its standard output.
func startSelf(ctx context.Context, t *testing.T, env ...string) (cmd *exec.Cmd, in io.Closer, lines *bufio.Scanner) {
	t.Helper()
	cmd = exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, in, bufio.NewScanner(out)
}

// drain is the program of a worker.
func drain(addr string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c, err := client.Dial(ctx, client.Config{Addrs: []string{addr}})
	if err != nil {
		return err
	}
	handle := func(inner context.Context, _ *client.Job) (client.Done, error) {
		fmt.Println("begun")
		<-ctx.Done()
		fmt.Println("stopping")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		return client.Done{Result: "finished"}, context.Cause(inner)
	}
	err = c.Work(ctx, client.Worker{Queue: "q", Handle: handle})
	return errors.Join(err, c.Close(context.Background()))
}
