package bench

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

var floorScenario = Scenario{
	Name:  "floor",
	Short: "what the machine can do: a durable write, a round trip, both",
	About: "What this machine can do: one durable write of a block of 4 KiB to a file that has its space already, as " +
		"the journal makes one for every " +
		"group of commands, and one round trip of 64 bytes over a TCP connection on loopback to another process that does " +
		"nothing else. " +
		"Then both together: agents on one connection, each of which does two round trips, as many as a cycle has, to a " +
		"process that syncs what has come and sends it back.",
	Yardstick: true,
	cases: func(cfg Config, targets []Target) ([]Case, error) {
		d := cfg.duration(time.Second)
		write := func(how string, flag int, sync func(*os.File) error) Case {
			return Case{Load: "durable write", Target: how, Repeat: 3, run: func(ctx context.Context) ([]Value, error) {
				took, err := writes(ctx, d, flag, sync)
				if err != nil {
					return nil, err
				}
				return quantiles(took), nil
			}}
		}
		cases := []Case{
			write("write and fdatasync", 0, syncData),
			write("write with O_DSYNC", syncFlag, func(*os.File) error { return nil }),
		}
		for _, t := range targets {
			if echo, ok := t.(Echo); ok {
				c := on(echo, "round trip", 3, func(ctx context.Context, site Site) ([]Value, error) {
					took, err := roundTrips(ctx, site.(*echoSite).tcp, d)
					if err != nil {
						return nil, err
					}
					return quantiles(took), nil
				})
				c.Target = "loopback"
				cases = append(cases, c)
				for _, n := range cfg.agents(1, 16, 64, 256) {
					c := on(echo, headcount(n), 3, func(ctx context.Context, site Site) ([]Value, error) {
						return bareCycles(ctx, site.(*echoSite).synced, n, d)
					})
					c.Target = "two synced round trips"
					cases = append(cases, c)
				}
			}
		}
		return cases, nil
	},
}

const (
	blockSize  = 4 << 10
	fileBlocks = 256
)

// writes makes durable writes to a file with its blocks allocated.
func writes(ctx context.Context, d time.Duration, flag int, sync func(*os.File) error) (took *Histogram, err error) {
	f, err := blocks(flag)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	block := make([]byte, blockSize)
	took = &Histogram{}
	for end, i := time.Now().Add(d), 0; ; i++ {
		block[0] = byte(i)
		began := time.Now()
		if !began.Before(end) && i > 0 {
			return took, nil
		}
		if _, err := f.WriteAt(block, int64(i%fileBlocks)*blockSize); err != nil {
			return nil, err
		}
		if err := sync(f); err != nil {
			return nil, err
		}
		took.Record(time.Since(began))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// roundTrips sends a few bytes to another process and back.
func roundTrips(ctx context.Context, addr string, d time.Duration) (*Histogram, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	message, took := make([]byte, 64), &Histogram{}
	for end := time.Now().Add(d); ; {
		began := time.Now()
		if !began.Before(end) && took.Count() > 0 {
			return took, nil
		}
		if err := exchange(conn, message); err != nil {
			return nil, err
		}
		took.Record(time.Since(began))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// exchange sends a message and waits for it to come back.
func exchange(conn net.Conn, message []byte) error {
	if _, err := conn.Write(message); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, message)
	return err
}
