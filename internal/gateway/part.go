package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/mod/sumdb/note"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/text"
)

// digestText is how a record names a blob.
var digestText = text.Pattern(`[0-9a-f]{64}`)

// gathered is what a part of a log holds of some sessions.
type gathered struct {
	st     Store
	items  []audit.Item
	bytes  int64             // of their records and values
	places map[string]uint64 // by sequence: up to which number results were judged with it
	names  map[audit.Digest]bool
	read   map[string]bool   // rules by name
	heads  map[string]uint64 // how many records of each session were read
}

// evidence is why a session does not verify, "" where it is what sessions rest on that does not.
type evidence struct {
	session string
	error
}

func (e *evidence) Unwrap() error { return e.error }

// evident makes evidence of what says that something was altered.
func evident(session string, err error) error {
	if errors.Is(err, audit.ErrAltered) {
		return &evidence{session, err}
	}
	return err
}

func gather(st Store) *gathered {
	return &gathered{st: st, places: map[string]uint64{}, names: map[audit.Digest]bool{}, read: map[string]bool{}, heads: map[string]uint64{}}
}

// add reads a session. The error is *evidence where it was altered.
func (g *gathered) add(ctx context.Context, id string) error {
	for rec, err := range recordsFrom(ctx, g.st, id, 1) {
		if err != nil {
			return evident(id, err)
		}
		g.heads[id] = rec.N
		g.take(&rec.item)
		g.name(string(rec.Data))
		if err := g.rulesOf(ctx, &rec); err != nil {
			return evident(id, err)
		}
		var data resultData
		if rec.Kind == audit.KindResult && json.Unmarshal(rec.Data, &data) == nil && data.Places != nil {
			log := placesPrefix + data.Places.Namespace
			g.places[log] = max(g.places[log], data.Places.N)
		}
	}
	return nil
}

// name notes the digests that a text of Writ's own says.
func (g *gathered) name(said string) {
	for _, text := range digestText().FindAllString(said, -1) {
		if d, err := audit.ParseDigest(text); err == nil {
			g.names[d] = true
		}
	}
}

// rulesOf notes what the rules of a decision name, and what its call is held against.
func (g *gathered) rulesOf(ctx context.Context, rec *recorded) error {
	if rec.Kind != audit.KindDecision {
		return nil
	}
	data, err := readDecision(rec.Data)
	if err != nil || data.Rules == "" {
		return nil // of before: it names them itself
	}
	if !g.read[data.Rules] {
		switch s, err := NewRulesets(g.st).readRules(ctx, data.Rules); {
		case errors.Is(err, audit.ErrNotFound) || errors.Is(err, errShape): // who makes its decisions again finds that
		case err != nil:
			return err
		default:
			g.read[data.Rules] = true
			g.name(s.Policy)
			g.name(s.Definitions)
		}
	}
	if b, kept := rec.item.Value(valueCall); kept {
		if c, err := readCall(b, &data); err == nil {
			g.name(c.own)
		}
	}
	return nil
}

func (g *gathered) take(it *audit.Item) {
	g.items = append(g.items, *it)
	g.bytes += int64(len(it.Leaf))
	for i := range it.Values {
		g.bytes += int64(len(it.Values[i].Bytes))
	}
}

// all reads what their decisions are made again from besides: the places that results
// were judged with, and the blobs that records name.
func (g *gathered) all(ctx context.Context) (items []audit.Item, blobs []audit.Blob, err error) {
	for _, log := range slices.Sorted(maps.Keys(g.places)) {
		for rec, err := range recordsFrom(ctx, g.st, log, 1) {
			if err != nil {
				return nil, nil, evident("", err)
			}
			if rec.N > g.places[log] {
				break
			}
			g.take(&rec.item)
		}
	}
	for d := range g.names {
		b, err := g.st.Blob(ctx, d)
		if errors.Is(err, audit.ErrNotFound) {
			continue // 64 digits that name none
		} else if err != nil {
			return nil, nil, evident("", err)
		}
		blobs = append(blobs, audit.Blob{Name: d, Bytes: b})
	}
	return g.items, blobs, nil
}

// GatherSessions reads what a part of a log (audit.WritePart) holds of these sessions, so that
// it verifies by itself and their decisions can be made again. The error is
// audit.ErrNotFound of what is no session.
func GatherSessions(ctx context.Context, st Store, ids ...string) (items []audit.Item, blobs []audit.Blob, err error) {
	g := gather(st)
	for _, id := range ids {
		if n, err := st.Head(ctx, id); err != nil {
			return nil, nil, err
		} else if !isSession(id) || n == 0 {
			return nil, nil, audit.ErrNotFound
		}
		if err := g.add(ctx, id); err != nil {
			return nil, nil, err
		}
	}
	return g.all(ctx)
}

// checkPart says what is wrong with a part that is to hold these items and all of their
// values: with the part itself, or with a session whose decisions do not come out again.
func checkPart(ctx context.Context, b []byte, v note.Verifier, items []audit.Item) (*audit.Problem, error) {
	p, err := audit.ReadPart(b)
	if err != nil {
		return nil, err
	}
	rules, sessions := NewRulesets(p), map[string]*Replayer{}
	rep, err := audit.VerifyPart(ctx, p, audit.VerifyOptions{Verifier: v, Replay: func(rec *audit.Record, it *audit.Item) error {
		s := sessions[rec.Session]
		if s == nil {
			s = rules.Replayer()
			s.Certify()
			sessions[rec.Session] = s
		}
		return s.Step(ctx, rec, it)
	}})
	if err != nil || rep.Problem != nil {
		return rep.Problem, err
	}
	for i := range items {
		there := false
		for it := range p.Read(ctx, items[i].Session, items[i].N) {
			there = it.Index == items[i].Index && string(it.Leaf) == string(items[i].Leaf) && len(it.Values) == len(items[i].Values)
			break
		}
		if !there {
			return nil, fmt.Errorf("it does not hold all of %s", items[i].Session)
		}
	}
	return nil, nil
}
