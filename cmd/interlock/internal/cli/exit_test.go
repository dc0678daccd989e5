package cli

import (
	"fmt"
	"testing"

	"github.com/interlockdev/interlock"
)

func TestExitCodesOfRefusals(t *testing.T) {
	for code, want := range map[interlock.Code]int{
		interlock.CodeFenced: ExitConflict, interlock.CodeDeadlock: ExitDeadlock, interlock.CodeHeld: ExitNotAcquired,
		interlock.CodeForbidden: ExitForbidden, interlock.CodeUnauthenticated: ExitForbidden, interlock.CodeTaken: ExitLost,
		interlock.CodeExpired: ExitLost, interlock.CodeRevoked: ExitLost, interlock.CodeShuttingDown: ExitUnreachable,
		interlock.CodeAtCapacity: ExitNotAcquired, interlock.CodeRateLimited: ExitNotAcquired,
		interlock.CodeQuota:     ExitNotAcquired,
		interlock.CodeWaitLimit: ExitNotAcquired, interlock.CodeBroken: ExitNotAcquired, interlock.CodePreempted: ExitLost,
		interlock.CodeModeForbidden: ExitForbidden, interlock.CodeKeyOrder: ExitUsage, interlock.CodeNoCapacity: ExitUsage,
		interlock.CodeTooManyPermits: ExitUsage, interlock.CodeUnmatchedKey: ExitUsage,
		interlock.CodeUnknownPattern: ExitFailure,
		interlock.CodeInvalidKey:     ExitUsage, interlock.CodeTooManyClaims: ExitUsage, interlock.CodeInternal: ExitFailure,
	} {
		if got := ExitCode(fmt.Errorf("wrapped: %w", &interlock.Error{Code: code})); got != want {
			t.Errorf("%s: exit code %d, want %d", code, got, want)
		}
	}
}
