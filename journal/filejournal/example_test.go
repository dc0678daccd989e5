package filejournal_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal"
)

// Append entries, which are durable when Append returns, and read them after a restart.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "journal-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	j, err := filejournal.Open(ctx, dir, filejournal.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := j.Append(ctx, j.Tail()+1, [][]byte{[]byte("granted"), []byte("released")}); err != nil {
		fmt.Println(err)
		return
	}
	if err := j.Close(); err != nil {
		fmt.Println(err)
		return
	}

	j, err = filejournal.Open(ctx, dir, filejournal.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer j.Close()
	err = j.Read(ctx, j.First(), func(e journal.Entry) error {
		if len(e.Data) > 0 { // each Open appends an entry of its own, without data
			fmt.Println(e.Index, string(e.Data))
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// 2 granted
	// 3 released
	// <nil>
}

// Check a journal's directory, such as a backup, without changing it.
func ExampleVerify() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "journal-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	j, err := filejournal.Open(ctx, dir, filejournal.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = j.Append(ctx, j.Tail()+1, [][]byte{[]byte("granted")})
	if err := errors.Join(err, j.Close()); err != nil {
		fmt.Println(err)
		return
	}

	report, err := filejournal.Verify(ctx, dir, nil)
	fmt.Println(report.Entries, "entries, clean:", report.Clean, err)
	// Output:
	// 2 entries, clean: true <nil>
}
