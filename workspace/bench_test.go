//go:build unix

package workspace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// BenchmarkCreate makes, looks at and deletes workspaces of each kind. Its time is that of Create; the
// first git status and Delete have metrics of their own. The base checkout is made before, and its time
// is a metric of the kinds that have one.
//
//	FILES=50000 go test ./workspace -run '^$' -bench Create -benchtime 3x
func BenchmarkCreate(b *testing.B) {
	files := 1000
	if text := os.Getenv("FILES"); text != "" {
		var err error
		if files, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	dir := b.TempDir()
	b.Setenv("HOME", dir)
	source := filepath.Join(dir, "web.git")
	importFiles(b, source, files)
	host, err := NewHost(filepath.Join(dir, "workspaces"))
	if err != nil {
		b.Fatal(err)
	}
	host.MinFree = -1
	options := []Options{{Kind: Overlay}, {Kind: Worktree}, {Kind: Sparse, Sparse: []string{"d7"}}}
	if (machine{}).reflink(host.Root) == nil {
		options = append(options, Options{Kind: Reflink})
	}
	for _, o := range options {
		b.Run(string(o.Kind), func(b *testing.B) { benchmarkKind(b, host, source, o) })
	}
}

func benchmarkKind(b *testing.B, host *Host, source string, o Options) {
	ctx := context.Background()
	create := func(name string) *Workspace {
		o.Name, o.Source = name, source
		p, err := host.Prepare(ctx, o)
		if err != nil {
			b.Fatal(err)
		}
		w, err := host.Create(ctx, p)
		if err != nil {
			b.Fatal(err)
		}
		return w
	}
	var first time.Duration
	if o.Kind.usesBase() {
		began := time.Now()
		create("keeps-the-base")
		first = time.Since(began)
	}
	var status, remove time.Duration
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		w := create(fmt.Sprintf("w%d", i))
		b.StopTimer()
		began := time.Now()
		if s, err := w.Status(ctx); err != nil || s.Dirty() {
			b.Fatal(s, err)
		}
		status += time.Since(began)
		began = time.Now()
		if _, err := host.Delete(ctx, w.Repo, w.Name, false); err != nil {
			b.Fatal(err)
		}
		remove += time.Since(began)
		b.StartTimer()
	}
	b.StopTimer()
	b.ReportMetric(float64(status.Milliseconds())/float64(b.N), "status-ms")
	b.ReportMetric(float64(remove.Milliseconds())/float64(b.N), "delete-ms")
	if o.Kind.usesBase() {
		b.ReportMetric(float64(first.Milliseconds()), "first-ms")
		if _, err := host.Delete(ctx, "web", "keeps-the-base", false); err != nil {
			b.Fatal(err)
		}
	}
}

// importFiles makes a bare repository with files of 4,000 bytes, in 50 folders.
func importFiles(b *testing.B, dir string, files int) {
	if out, err := exec.Command("git", "init", "--quiet", "--bare", "-b", "main", dir).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command("git", "--git-dir", dir, "fast-import", "--quiet")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	fmt.Fprint(in, "commit refs/heads/main\ncommitter a <a@b> 1000000000 +0000\ndata 1\nx\n")
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 4000)
	for i := range files {
		for j := range text {
			text[j] = "abcdefghijklmnop \n"[random.IntN(18)]
		}
		fmt.Fprintf(in, "M 100644 inline d%d/f%d.txt\ndata %d\n%s\n", i%50, i, len(text), text)
	}
	if err := in.Close(); err != nil {
		b.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
}
