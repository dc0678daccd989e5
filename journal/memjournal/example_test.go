package memjournal_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/memjournal"
)

// A second owner fences the first: what the first appends from then on is refused.
func Example() {
	ctx := context.Background()
	store := &memjournal.Store{}
	first, err := store.Open(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(first.Append(ctx, first.Tail()+1, [][]byte{[]byte("granted")}))

	second, err := store.Open(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = first.Append(ctx, first.Tail()+1, [][]byte{[]byte("released")})
	fmt.Println(errors.Is(err, journal.ErrFenced), second.Epoch() > first.Epoch())
	// Output:
	// <nil>
	// true true
}
