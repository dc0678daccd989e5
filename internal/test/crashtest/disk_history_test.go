package crashtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/history/traffic"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// firstCalls is how many of the first writes and syncs fail, one in each run; of openings
// and renamings it makes a few only.
const (
	firstCalls    = 40
	firstOpenings = 10
)

// injury is a fault in the system calls of one run.
type injury struct {
	fault  string // as it is counted
	calls  string
	how    string
	number int // of the call to which it is done
}

// injuries is every fault at each of the first calls.
func injuries() (list []injury) {
	for n := 1; n <= firstCalls; n++ {
		for _, x := range []injury{
			{"eio", "fdatasync,fsync", "error=EIO", n},
			{"eio", "pwrite64", "error=EIO", n},
			{"enospc", "pwrite64", "error=ENOSPC", n},
			{"slow_sync", "fdatasync,fsync", "delay_enter=50000", n},
			{"enospc", "openat,renameat,fallocate", "error=ENOSPC", n},
			{"eio", "openat,renameat,fallocate", "error=EIO", n},
		} {
			if x.calls == "openat,renameat,fallocate" && n > firstOpenings || x.fault == "slow_sync" && n > 1 {
				continue
			}
			list = append(list, x)
		}
	}
	return list
}

// String is the injury as strace takes it. A slow sync does no harm, so each of the first
// ones is slow, in one run.
func (x injury) String() string {
	when := fmt.Sprint(x.number)
	if x.fault == "slow_sync" {
		when = fmt.Sprintf("1..%d", firstCalls)
	}
	return fmt.Sprintf("%s:%s:when=%s", x.calls, x.how, when)
}

// Each of the server's first writes, syncs and openings fails or takes long, one in each
// run: the server ends or refuses, and the next one knows all that was acknowledged.
func TestHistoryOfDiskFaults(t *testing.T) {
	const plays = 2
	var parts [plays][]injury
	for i, x := range injuries() {
		parts[i%plays] = append(parts[i%plays], x)
	}
	for i, part := range parts {
		t.Run(fmt.Sprint("part ", i+1), func(t *testing.T) {
			t.Parallel()
			diskFaults(t, uint64(10+i), part)
		})
	}
}

func diskFaults(t *testing.T, seed uint64, list []injury) {
	dir := t.TempDir()
	server := launchtest.Start(t, launch.Config{DataDir: dir})
	site := &traffic.Site{}
	site.Move(server.HTTP)
	p := begin(t, site, seed)
	counts := map[string]int{}
	ended, refused, hits := 0, 0, 0
	for _, x := range list {
		server.Kill()
		// strace counts for each thread by itself; so there shall be few that do the work.
		wrap := append([]string{"env", "GOMAXPROCS=1"}, strace(t, x.String())...)
		log := wrap[slices.Index(wrap, "-o")+1]
		var err error
		server, err = launchtest.TryStart(t, launch.Config{DataDir: dir, Wrap: wrap, Args: tiny})
		var exit *launch.ExitError
		switch {
		case errors.As(err, &exit):
			refused++
			if exit.Code != exitDisk {
				t.Errorf("%s: the start ended with exit code %d:\n%s", x, exit.Code, exit.Log)
			}
		case err != nil:
			t.Fatalf("%s: %v", x, err)
		default:
			site.Move(server.HTTP)
			select {
			case <-p.record.After(40 + 12*x.number):
				server.Kill()
			case <-server.Ended():
				ended++
				if code := server.ExitCode(); code != exitDisk {
					t.Errorf("%s: exit code %d:\n%s", x, code, server.Log())
				}
			}
		}
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		hit := bytes.Count(text, []byte("(INJECTED)")) + bytes.Count(text, []byte("(DELAYED)"))
		counts[x.fault] += hit
		hits += min(hit, 1)
		if server == nil {
			server = launchtest.Start(t, launch.Config{DataDir: dir})
			site.Move(server.HTTP)
		}
	}
	server.Kill()
	server = launchtest.Start(t, launch.Config{DataDir: dir})
	site.Move(server.HTTP)
	p.end()
	for kind, n := range counts {
		p.fault(kind, n)
	}
	t.Attr("count.crash_recoveries", fmt.Sprint(len(list)))
	t.Logf("%d runs, %d of them disturbed: %d servers ended, %d did not start", len(list), hits, ended, refused)
}
