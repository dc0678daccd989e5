package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/internal/bench"
	"github.com/interlockdev/interlock/internal/launch"
)

func newBench(a *app) *cobra.Command {
	var (
		agents   []int
		doors    []string
		duration time.Duration
	)
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure cycles of acquire and release",
		Long: `Let agents acquire and release keys of their own, over and over, and say how many
cycles a second that were and how long one took. Every cycle is durable.

It starts a server of its own, in a process of its own with its journal in a
temporary directory, and removes it afterwards. Agents and server share this
machine. Give --url and --grpc-addr on the command line to measure another server,
without credentials and TLS.`,
		Example: `  interlock bench
  interlock bench --door stream --agents 256 --duration 10s`,
		Args:        noArgs,
		Annotations: map[string]string{},
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			target := bench.Config{GRPC: a.server.GRPC, URL: a.server.URL, Duration: duration}
			if !a.namesServer(cmd) {
				end, err := ownServer(ctx, &target)
				if err != nil {
					return err
				}
				defer end()
			}
			var results []bench.Result
			for _, door := range doors {
				for _, n := range agents {
					fmt.Fprintf(a.err, "%s, %d agents, %v ...\n", door, n, duration)
					target.Door, target.Agents = bench.Door(door), n
					r, err := bench.Cycles(ctx, target)
					if err != nil {
						return err
					}
					results = append(results, r)
				}
			}
			if a.output == "json" {
				return json.NewEncoder(a.out).Encode(results)
			}
			w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', tabwriter.AlignRight)
			fmt.Fprintln(w, "DOOR\tAGENTS\tCYCLES/S\tP50\tP99\t")
			for _, r := range results {
				fmt.Fprintf(w, "%s\t%d\t%.0f\t%v\t%v\t\n", r.Door, r.Agents, r.PerSecond, r.P50.Round(time.Microsecond), r.P99.Round(time.Microsecond))
			}
			return w.Flush()
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&agents, "agents", []int{1, 64, 256}, "how many agents; several are run one after the other")
	f.StringSliceVar(&doors, "door", []string{"stream", "http"}, "stream, http or both")
	f.DurationVar(&duration, "duration", 3*time.Second, "how long each run takes")
	return cmd
}

// ownServer starts a server for the time of the measurement.
func ownServer(ctx context.Context, target *bench.Config) (end func(), err error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "interlock-bench-")
	if err != nil {
		return nil, err
	}
	s, err := launch.Start(ctx, launch.Config{Binary: binary, DataDir: dir, Args: []string{"--log-level", "warn"}})
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	target.GRPC, target.URL = s.GRPC, "http://"+s.HTTP
	return func() {
		s.Kill()
		_ = os.RemoveAll(dir)
	}, nil
}
