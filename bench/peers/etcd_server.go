package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/interlockdev/interlock/internal/bench"
	"github.com/interlockdev/interlock/internal/launch"
)

// asMember makes this program a member of etcd: it links etcd anyway, and so nothing else
// needs to be built or found.
const asMember = "INTERLOCK_PEERS_ETCD_MEMBER"

// etcdServer is etcd with one member: with more, each answer would wait for others.
type etcdServer struct{}

func (etcdServer) missing() string { return "" }

func (etcdServer) start(ctx context.Context, dir string) (*instance, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	clients, members := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	cmd := exec.Command(self, "--name", "m", "--data-dir", dir,
		"--listen-client-urls", clients, "--advertise-client-urls", clients,
		"--listen-peer-urls", members, "--initial-advertise-peer-urls", members, "--initial-cluster", "m="+members,
		"--enable-pprof") // it allows to trigger its garbage collection
	cmd.Dir, cmd.SysProcAttr = dir, launch.Attributes()
	cmd.Env = append(os.Environ(), asMember+"=1")
	p, err := start(ctx, cmd, "serving client traffic insecurely")
	if err != nil {
		return nil, err
	}
	tell := func(ctx context.Context, u *bench.Usage, settled bool) error {
		return etcdTells(ctx, clients, u, settled)
	}
	return &instance{process: p, addr: clients, quit: syscall.SIGKILL, tell: tell}, nil
}

// etcdTells asks for the heap and for the bytes written to the log.
func etcdTells(ctx context.Context, url string, u *bench.Usage, settled bool) error {
	if settled {
		body, err := get(ctx, url+"/debug/pprof/heap?gc=1")
		if err != nil {
			return fmt.Errorf("let etcd collect its garbage: %w", err)
		}
		_, err = io.Copy(io.Discard, body)
		_ = body.Close()
		if err != nil {
			return fmt.Errorf("let etcd collect its garbage: %w", err)
		}
	}
	body, err := get(ctx, url+"/metrics")
	if err != nil {
		return fmt.Errorf("ask etcd for its metrics: %w", err)
	}
	defer func() { _ = body.Close() }()
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		var to *int64
		switch name {
		case "go_memstats_heap_alloc_bytes":
			to = &u.Live
		case "etcd_disk_wal_write_bytes_total":
			to = &u.Written
		default:
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return fmt.Errorf("etcd's metric %s: %w", name, err)
		}
		*to = int64(v)
	}
	return lines.Err()
}

func get(ctx context.Context, url string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		_ = res.Body.Close()
		return nil, fmt.Errorf("%s: %s", req.URL.Path, res.Status)
	}
	return res.Body, nil
}
