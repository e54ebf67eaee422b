package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/gateway/localdoor"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/statedir"
	"github.com/writ-project/writ/internal/text"
)

// sharedName is what the session of a client's gateways is kept under: its process id
// is used again, with its start it is not. "" where the start cannot be known.
func sharedName(pid int) string {
	start, among := localdoor.Started(pid)
	if pid <= 1 || start == "" {
		return ""
	}
	return fmt.Sprintf("client-%d-%s-%s", pid, start, among)
}

// sharedSession finds the session that the gateways of one client process share, or
// opens it. nil is that there is none to be had: the gateway has one of its own.
func sharedSession(ctx context.Context, state string, g *gateway.Gateway, principal string, pid int) (downstream.Session, error) {
	endShared(ctx, state, g, principal)
	name := sharedName(pid)
	if name == "" {
		return nil, nil
	}
	for range 3 {
		var opened downstream.Session
		minted := ""
		secret, err := keptSession(state, name, func() (secret string, err error) {
			minted, opened, err = g.OpenSession(ctx, principal, downstream.CarrierStdio)
			return minted, err
		})
		if err != nil {
			return nil, cli.Fail(cli.ExitIO, "writ audit verify", "the client's session cannot be had: %w", err)
		}
		if opened != nil && minted != secret { // another gateway of the client was first
			if err := g.CloseSession(ctx, opened); err != nil {
				return nil, cli.Fail(cli.ExitIO, "writ audit verify", "a session cannot be closed: %w", err)
			}
		}
		s, err := g.FindSession(ctx, principal, secret)
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, downstream.ErrNoSession) {
			return nil, sessionError(name, err)
		}
		// It was closed, or outlived its time, and its client did not.
		if path, err := sessionFile(state, name); err != nil || os.Remove(path) != nil {
			return nil, cli.Fail(cli.ExitIO, "", "the file of a session that is over cannot be removed")
		}
	}
	return nil, cli.Fail(cli.ExitIO, "writ session list", "the client's session is closed as soon as it is opened")
}

var sharedFile = text.Pattern(`^client-([0-9]{1,10})-([0-9]{1,20})-([0-9a-f]{12})$`)

// shared is a session that the gateways of a client share, as it is kept.
type shared struct {
	name string
	pid  int  // of the client
	runs bool // it has not ended
	here bool // it is, or was, in this container
}

// sharedIn are those of a state directory.
func sharedIn(state string) (all []shared) {
	kept, _ := os.ReadDir(filepath.Join(state, statedir.SessionsDir))
	for _, e := range kept {
		m := sharedFile().FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		if pid, err := strconv.Atoi(m[1]); err == nil {
			start, among := localdoor.Started(pid)
			all = append(all, shared{e.Name(), pid, start == m[2], among == m[3]})
		}
	}
	return all
}

// endShared closes the sessions of clients that have ended. One that cannot be closed
// lapses.
func endShared(ctx context.Context, state string, g *gateway.Gateway, principal string) {
	for _, kept := range sharedIn(state) {
		if kept.runs {
			continue
		}
		secret, err := readSession(state, kept.name)
		if err != nil || secret == "" {
			continue
		}
		s, err := g.FindSession(ctx, principal, secret)
		if err == nil && !kept.here || err != nil && !errors.Is(err, downstream.ErrNoSession) {
			continue // of another container, where its client may live
		}
		// Who removes the file closes the session.
		if os.Remove(filepath.Join(state, statedir.SessionsDir, kept.name)) == nil && err == nil {
			_ = g.CloseSession(ctx, s)
		}
	}
}

// sharedBy is the public id of the session that the gateways of a client share, ""
// where they share none.
func sharedBy(ctx context.Context, state string, pid int) (string, error) {
	name := sharedName(pid)
	if name == "" {
		return "", nil
	}
	secret, err := readSession(state, name)
	if err != nil || secret == "" {
		return "", err
	}
	st, err := openForReading(state)
	if err != nil {
		return "", err
	}
	defer st.Close()
	return gateway.SessionID(ctx, st, secret)
}
