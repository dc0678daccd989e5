package interlock_test

import (
	"errors"
	"fmt"

	"github.com/interlockdev/interlock"
)

// Tell refusals apart by their code, which keeps its meaning for ever.
func ExampleError() {
	var err error = &interlock.Error{
		Code: interlock.CodeHeld, Key: "account:12345", Message: "account:12345 is held by billing",
		Advice: interlock.Advice{Action: interlock.ActWait},
	}
	err = fmt.Errorf("apply late fee: %w", err)

	fmt.Println(errors.Is(err, &interlock.Error{Code: interlock.CodeHeld}))
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		fmt.Println(refusal.Code, refusal.Key, refusal.Advice.Action)
	}
	// Output:
	// true
	// held account:12345 wait
}

// Compute which part of a shared-out key a resource belongs to: the same in every process and
// language.
func ExamplePartOf() {
	for _, customer := range []string{"customer:1", "customer:2", "customer:3"} {
		fmt.Println(customer, interlock.PartOf(customer, 8))
	}
	// Output:
	// customer:1 0
	// customer:2 4
	// customer:3 6
}
