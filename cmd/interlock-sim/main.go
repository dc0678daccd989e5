package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/interlockdev/interlock/sim"
)

func main() {
	seed := flag.Int64("seed", -1, "tell the story of this seed's run")
	seeds := flag.String("seeds", "0..99", "run these seeds, such as 0..99")
	commands := flag.Int("commands", 0, "carry out at least so many commands in each run; 0: as many as in CI")
	long := flag.Duration("long", 0, "go on behind the last seed until so much time has passed")
	first := flag.Bool("first", false, "begin no further run after the first that fails")
	flag.Parse()
	if *seed >= 0 {
		os.Exit(tell(uint64(*seed), *commands))
	}
	var from, last uint64
	if _, err := fmt.Sscanf(strings.Replace(*seeds, "..", " ", 1), "%d %d", &from, &last); err != nil || last < from {
		fmt.Fprintf(os.Stderr, "interlock-sim: -seeds %q: want two numbers, such as 0..99\n", *seeds)
		os.Exit(2)
	}
	began := time.Now()
	more := func(next uint64) bool { return next <= last || time.Since(began) < *long }
	totals, failed := sim.RunMany(from, more, sim.Options{Commands: *commands, First: *first})
	fmt.Print(totals)
	fmt.Printf("in %v\n", time.Since(began).Round(time.Millisecond))
	for _, err := range failed {
		fmt.Println(err)
	}
	if len(failed) > 0 {
		os.Exit(1)
	}
}

func tell(seed uint64, commands int) (status int) {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	r := sim.Run(seed, sim.Options{Commands: commands, Story: out})
	fmt.Fprint(out, r.Totals)
	fmt.Fprintf(out, "hash %016x\n", r.Hash)
	if r.Err != nil {
		fmt.Fprintln(out, r.Err)
		return 1
	}
	return 0
}
