package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// writerEnv makes the test binary one of several writers, each a process of its own.
const writerEnv = "INTERLOCK_TEST_WRITER"

func TestMain(m *testing.M) {
	if root := os.Getenv(writerEnv); root != "" {
		seed, err := strconv.ParseUint(os.Args[1], 10, 64)
		if err == nil {
			err = addLines(root, seed, 12, os.Stdout)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// addLines is a writer that reads one of two files, adds a line of its own somewhere,
// and writes; where it is refused it does not try again. It tells each line that was
// accepted, and each that was refused.
func addLines(root string, seed uint64, writes int, told io.Writer) error {
	d, err := Open(root)
	if err != nil {
		return err
	}
	defer d.Close()
	r := rand.New(rand.NewPCG(seed, 3))
	for i := range writes {
		path := fmt.Sprintf("file-%d", r.IntN(2))
		f, err := d.Read(path)
		if err != nil {
			return err
		}
		lines := strings.SplitAfter(string(f.Body), "\n")
		line := fmt.Sprintf("writer %d line %d\n", seed, i)
		at := r.IntN(len(lines))
		body := strings.Join(lines[:at], "") + line + strings.Join(lines[at:], "")
		result, err := d.Write(
			context.Background(), Change{Path: path, Base: f.Version, Body: []byte(body), Agent: fmt.Sprint(seed)},
		)
		word := "accepted"
		switch {
		case errors.As(err, new(*StaleError)):
			word = "refused"
		case err != nil:
			return err
		case !strings.Contains(string(result.Body), line):
			return fmt.Errorf("the answer to %q has not got it", line)
		}
		if _, err := fmt.Fprintf(told, "%s %s %s", word, path, line); err != nil {
			return err
		}
	}
	return nil
}

type log struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

// No write is lost among concurrent writers: each line that was accepted is in its
// file once, in one that was merged or as it was written, and none that was refused.
func TestNoWriteIsLost(t *testing.T) {
	t.Run("goroutines", func(t *testing.T) {
		checkWriters(t, func(root string, told *log) {
			var wg sync.WaitGroup
			shared := open(t, root)
			for seed := range uint64(6) {
				wg.Go(func() {
					if err := addLines(root, seed, 12, told); err != nil {
						t.Error(err)
					}
				})
			}
			// And some that share what they have open.
			for range 2 {
				wg.Go(func() {
					for range 20 {
						if _, err := shared.Read("file-0"); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
		})
	})
	t.Run("processes", func(t *testing.T) {
		checkWriters(t, func(root string, told *log) {
			var wg sync.WaitGroup
			for seed := range 4 {
				wg.Go(func() {
					cmd := exec.Command(os.Args[0], fmt.Sprint(seed))
					cmd.Env = append(os.Environ(), writerEnv+"="+root)
					var problem strings.Builder
					cmd.Stdout, cmd.Stderr = told, &problem
					if err := cmd.Run(); err != nil {
						t.Errorf("%v: %s", err, problem.String())
					}
				})
			}
			wg.Wait()
		})
	})
}

func checkWriters(t *testing.T, run func(root string, told *log)) {
	root := t.TempDir()
	var lines strings.Builder
	for i := range 60 {
		fmt.Fprintln(&lines, "line", i)
	}
	for i := range 2 {
		put(t, root, fmt.Sprint("file-", i), lines.String())
	}
	told := &log{}
	run(root, told)
	files := map[string]string{"file-0": content(t, root, "file-0"), "file-1": content(t, root, "file-1")}
	accepted, refused := 0, 0
	for entry := range strings.Lines(told.b.String()) {
		word, rest, _ := strings.Cut(entry, " ")
		path, line, _ := strings.Cut(rest, " ")
		want := 0
		if word == "accepted" {
			want = 1
			accepted++
		} else {
			refused++
		}
		if n := strings.Count(files[path], line); n != want {
			t.Errorf("%s %q is %d times in %s", word, line, n, path)
		}
	}
	total := 0
	for path, body := range files {
		total += strings.Count(body, "\n")
		if strings.Contains(body, "<<<<<<<") {
			t.Errorf("%s has a conflict in it:\n%s", path, body)
		}
	}
	if accepted == 0 || total != 2*60+accepted {
		t.Errorf("%d lines are in the files, %d were accepted, %d refused", total-2*60, accepted, refused)
	}
	t.Logf("%d accepted, %d refused", accepted, refused)
}

// A reader sees whole contents only, whenever a writer is killed.
func TestKilledWriters(t *testing.T) {
	root := t.TempDir()
	const part = "a content that was written as a whole\n"
	put(t, root, "file-0", strings.Repeat(part, 2000))
	put(t, root, "file-1", strings.Repeat(part, 2000))
	d := open(t, root)
	for seed := range 12 {
		cmd := exec.Command(os.Args[0], fmt.Sprint(seed))
		cmd.Env = append(os.Environ(), writerEnv+"="+root)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// After its first word it is in the middle of the next write, somewhere.
		first := make([]byte, 1)
		if _, err := out.Read(first); err != nil {
			t.Fatal(err)
		}
		for range seed * 3 {
			read(t, d, "file-0")
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		for _, path := range []string{"file-0", "file-1"} {
			f := read(t, d, path)
			rest := string(f.Body)
			for line := range strings.Lines(rest) {
				if line != part && (!strings.HasPrefix(line, "writer ") || !strings.HasSuffix(line, "\n")) {
					t.Fatalf("%s has the line %q", path, line)
				}
			}
			if n := strings.Count(rest, part); n != 2000 {
				t.Fatalf("%s has %d of its 2000 lines", path, n)
			}
			write(t, d, Change{Path: path, Base: f.Version, Body: []byte(rest + "writer none\n")})
		}
	}
	if _, err := os.Lstat(filepath.Join(root, tempName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after a write something is left of the killed ones: %v", err)
	}
}
