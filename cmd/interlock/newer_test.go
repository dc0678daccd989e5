//go:build unix

package main

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/journal/filejournal"
)

// A journal of a newer version is refused with what to do, and left as it is.
func TestServeRefusesNewer(t *testing.T) {
	event := func(version, kind byte) []byte { return []byte{version, 8: 0, 9: kind, 10: 0} }
	for _, c := range []struct {
		name   string
		change func(t *testing.T, dir string)
	}{
		{"files", func(t *testing.T, dir string) {
			name := filepath.Join(dir, "00000000000000000001.log")
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			binary.LittleEndian.PutUint32(b[8:], 2)
			binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[:12], crc32.MakeTable(crc32.Castagnoli)))
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"entry", func(t *testing.T, dir string) { stored(t, dir, event(2, 1), nil) }},
		{"event", func(t *testing.T, dir string) { stored(t, dir, event(1, 200), nil) }},
		{"snapshot", func(t *testing.T, dir string) { stored(t, dir, event(1, 1), event(1, 200)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			stored(t, dir, nil, nil)
			c.change(t, dir)
			before := contentOf(t, dir)
			out, code := startProc(
				t, cleanEnvironment(), "serve", "--data-dir", dir, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
			).end()
			if code != cli.ExitNewer || !strings.Contains(out, "newer version") ||
				!strings.Contains(out, "start that version or a later one") {
				t.Errorf("exit code %d\n%s", code, out)
			}
			if c.name != "snapshot" && contentOf(t, dir) != before {
				t.Error("the directory was changed")
			}
		})
	}
}

// stored appends an entry to the journal in a directory, and saves a snapshot.
func stored(t *testing.T, dir string, entry, snapshot []byte) {
	t.Helper()
	j, err := filejournal.Open(t.Context(), dir, filejournal.Options{SegmentBytes: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if entry != nil {
		if err := j.Append(t.Context(), j.Tail()+1, [][]byte{entry}); err != nil {
			t.Fatal(err)
		}
	}
	if snapshot != nil {
		err := j.SaveSnapshot(t.Context(), j.Tail(), func(w io.Writer) error {
			_, err := w.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(snapshot))), snapshot...))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// contentOf is all that is in a directory.
func contentOf(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(e.Name() + "\n" + string(b))
	}
	return all.String()
}
