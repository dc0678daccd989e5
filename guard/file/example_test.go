package file_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/interlockdev/interlock/guard/file"
)

// Two agents change one file. The write that rests on an old version is refused, and reports what
// changed meanwhile.
func ExampleDir_Write() {
	ctx := context.Background()
	root, err := os.MkdirTemp("", "work-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	dir, err := file.Open(root)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dir.Close()

	first, err := dir.Write(
		ctx, file.Change{Path: "config.json", Base: file.None, Body: []byte(`{"retries":1}`), Agent: "web-1"},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	// Both read that version; web-2 writes first.
	_, err = dir.Write(
		ctx,
		file.Change{
			Path: "config.json", Base: first.Version, Body: []byte(`{"retries":3}`), Agent: "web-2",
			Note: "timeouts in staging",
		},
	)
	fmt.Println("web-2:", err)
	_, err = dir.Write(
		ctx, file.Change{Path: "config.json", Base: first.Version, Body: []byte(`{"retries":5}`), Agent: "web-1"},
	)
	if stale, ok := errors.AsType[*file.StaleError](err); ok {
		fmt.Println("web-1: stale,", stale.Packet.Changes[0].Now.Agent, "changed it:", stale.Packet.Changes[0].Now.Note)
	}
	// Output:
	// web-2: <nil>
	// web-1: stale, web-2 changed it: timeouts in staging
}
