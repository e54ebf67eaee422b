package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/store/sqlite"
	"github.com/writ-project/writ/internal/strictjson"
	policies "github.com/writ-project/writ/policy"
)

// envFull makes this process mount a small file system at a place that it alone sees, and
// fill it: "place|URL of its server".
const envFull = "WRIT_TEST_FULL"

func init() {
	roles = append(roles, func() {
		if place, url, ok := strings.Cut(os.Getenv(envFull), "|"); ok {
			if err := fullMain(place, url); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	})
}

// notMounted is what fullMain says where it may not mount anything.
const notMounted = "not mounted: "

// ballast takes what room there is, and gives it back.
type ballast struct{ path string }

func (b ballast) fill() error {
	f, err := os.OpenFile(b.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if n, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			if n == 0 {
				size /= 2
			}
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (b ballast) clear() error { return os.Remove(b.path) }

// caller is a gateway in this process, and one session of it.
type caller struct {
	gw *gateway.Gateway
	s  downstream.Session
}

// call returns "" for a call that passed, else why not.
func (c *caller) call(tool, args string) string {
	r := c.gw.Handle(context.Background(), &downstream.Request{Method: "tools/call", Params: strictjson.Of([]byte(callParams(tool, args))),
		Era: downstream.Modern, Version: "2026-07-28", Session: c.s, Principal: downstream.Loopback, Peer: gateway.NoPeer})
	if r.Err != nil {
		return r.Err.Message
	}
	return refusedFor(answer{result: r.Result})
}

// fullMain works on a disk that is full, from before there is a log to behind its end.
func fullMain(place, url string) error {
	if err := syscall.Mount("tmpfs", place, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
		return errors.New(notMounted + err.Error())
	}
	ctx := context.Background()
	full := ballast{filepath.Join(place, "ballast")}
	for _, dir := range []string{"state", "heads"} {
		if err := os.Mkdir(filepath.Join(place, dir), 0o700); err != nil {
			return err
		}
	}
	// refused is an opening that says why, and what to do.
	refused := func(when string) error {
		st, err := openFaulty(place, func() {})
		if err == nil {
			return errors.Join(fmt.Errorf("%s a full disk is opened", when), st.Close())
		}
		if oe := (*sqlite.OpenError)(nil); errors.As(err, &oe) && oe.Reason != sqlite.Unwritable {
			return fmt.Errorf("%s a full disk: %w", when, err)
		}
		return nil
	}
	// Before there is anything.
	if err := errors.Join(full.fill(), refused("with nothing on it,"), full.clear()); err != nil {
		return err
	}
	st, err := openFaulty(place, func() {})
	if err != nil {
		return err
	}
	p, faults := policies.Parse("policy.yaml", []byte(faultyPolicy))
	if len(faults) > 0 {
		return fmt.Errorf("%v", faults)
	}
	var log bytes.Buffer
	gw, err := gateway.New(gateway.Options{Store: st, Policy: p, Version: "test", Log: slog.New(slog.NewTextHandler(&log, nil)),
		Servers: []upstream.Config{{Name: "toy", Era: upstream.Modern, URL: url}}})
	if err == nil {
		err = gw.Start(ctx)
	}
	if err == nil {
		err = gw.Ready(ctx)
	}
	if err != nil {
		return err
	}
	c := &caller{gw: gw}
	if _, c.s, err = gw.OpenSession(ctx, downstream.Loopback, downstream.CarrierEndpoint); err != nil {
		return err
	}
	calls := 0
	if why := c.call("list_items", `{}`); why != "" {
		return errors.New(why)
	}
	for round := range 2 {
		id := fmt.Sprintf(`{"id":"item-%d"}`, 17+round)
		if err := full.fill(); err != nil {
			return err
		}
		// What was made ready ahead takes some more.
		for refused := 0; refused < 3; calls++ {
			read, act := c.call("look", `{"text":"around"}`), c.call("mark_item", id)
			if refused++; read != notRecorded || act != notRecorded {
				refused = 0
			}
			for _, why := range []string{read, act} {
				if why != "" && why != notRecorded && !strings.Contains(why, "outcome is unknown") {
					return fmt.Errorf("a call on a full disk: %s", why)
				}
			}
			if calls > 10_000 {
				return errors.New("the disk is not full")
			}
		}
		if _, _, err := gw.OpenSession(ctx, downstream.Loopback, downstream.CarrierEndpoint); err == nil {
			return errors.New("a session is opened on a full disk")
		}
		if _, err := st.Checkpoint(ctx); err == nil {
			return errors.New("a full disk takes what the journal holds")
		}
		if !strings.Contains(log.String(), syscall.ENOSPC.Error()) {
			return fmt.Errorf("the gateway does not say why: %s", &log)
		}
		select {
		case <-st.Broken():
			return fmt.Errorf("a full disk is taken for one that fails: %s", &log)
		default:
		}
		if err := full.clear(); err != nil {
			return err
		}
		// There is room, and all goes on.
		if why := c.call("delete_item", id); why != "" {
			return fmt.Errorf("with room again: %s\n%s", why, &log)
		}
		if why := c.call("look", `{"text":"around"}`); why != "" {
			return errors.New(why)
		}
		if round == 0 {
			if _, err := st.Checkpoint(ctx); err != nil {
				return err
			}
		}
	}
	// It is full when the gateway ends, and when the next one begins.
	if err := full.fill(); err != nil {
		return err
	}
	if err := gw.Close(); err != nil {
		return err
	}
	if err := st.Close(); err == nil {
		return errors.New("a full disk takes what the journal holds at the end")
	}
	if err := errors.Join(refused("with a log on it,"), full.clear()); err != nil {
		return err
	}
	st, err = openFaulty(place, func() {})
	if err != nil {
		return err
	}
	defer st.Close()
	_, verifier, err := statedir.Key(filepath.Join(place, "state"))
	if err != nil {
		return err
	}
	snap, err := st.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer snap.Close()
	acts := 0
	rep, err := audit.Verify(ctx, snap, audit.VerifyOptions{Verifier: verifier, Replay: func(rec *audit.Record, _ *audit.Item) error {
		if rec.Kind == audit.KindDecision && text(rec.Data, "tool") == "delete_item" && text(rec.Data, "status") == "accepted" {
			acts++
		}
		return nil
	}})
	if err == nil && rep.Problem != nil {
		err = rep.Problem
	}
	if err == nil && acts != 2 {
		err = fmt.Errorf("%d acts are on record", acts)
	}
	return err
}

// TestFullDisk (L06): on a disk without room nothing is opened, read or acted on, and the gateway says why;
// once there is room it all goes on, without a restart, and nothing is lost.
func TestFullDisk(t *testing.T) {
	y := newToy()
	c := y.config(t, true, true)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), envFull+"="+t.TempDir()+"|"+c.URL)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 { // who may not mount may where he is alone
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || strings.HasPrefix(string(out), notMounted) {
		t.Skipf("no file system can be mounted here: %v %s", err, out)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := y.gone(); len(got) != 2 {
		t.Errorf("deleted %q", got)
	}
}
