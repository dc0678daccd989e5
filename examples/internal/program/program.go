package program

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"

	"github.com/interlockdev/interlock"
)

// Namespace returns a namespace for one run of an example: example-NAME-RANDOM. With namespaces of
// their own, examples run in any order on one server, and again.
func Namespace(name string) interlock.Namespace {
	return interlock.Namespace(fmt.Sprintf("example-%s-%08x", name, rand.Uint32()))
}

// Main calls run with the address of the flag -grpc, and exits with code 1 if it fails. Its
// context ends with Ctrl-C.
func Main(run func(ctx context.Context, addr string, out io.Writer) error) {
	addr := flag.String("grpc", "127.0.0.1:7421", "address of the server's session streams")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *addr, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
