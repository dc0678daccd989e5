package etcdjournal

import (
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// explain tells remote what an error of etcd means.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%w: %w", journal.ErrNoSpace, err)
	case decided(err):
		return remote.Final(fmt.Errorf("etcd: %w", err))
	}
	return fmt.Errorf("etcd: %w", err)
}

// decided reports whether an error is an answer: asking again would bring the same one.
func decided(err error) bool {
	switch codeOf(err) {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.PermissionDenied, codes.Unauthenticated,
		codes.NotFound, codes.OutOfRange, codes.Unimplemented, codes.DataLoss:
		return true
	}
	return false
}

func codeOf(err error) codes.Code {
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return e.Code()
	}
	return status.Code(err)
}
