package program

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

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
