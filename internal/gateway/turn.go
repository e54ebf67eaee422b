package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/mcp/downstream"
)

const (
	// KindTurn is the kind of a record of a user's turn (R6).
	KindTurn audit.Kind = "turn"
	// KindLapse records that the user's turns so far vouch for nothing more.
	KindLapse audit.Kind = "lapse"

	// KindReopen records that a person lifted the closures of R24.
	KindReopen audit.Kind = "reopen"

	valueTurn = "turn" // turn: the exact bytes the user typed

	// turnLapse is how long a session may rest before what the user said in it
	// counts as another conversation.
	turnLapse = 30 * time.Minute
)

// turnData is the data of a turn's record.
type turnData struct {
	Evidence   uint32 `json:"evidence"`
	Admissible bool   `json:"admissible"`
	Why        string `json:"why,omitempty"`
	// Halted is the input policy's rejection; the session makes no call after it.
	Halted *writ.Rejection `json:"halted,omitempty"`
}

// HaltedError says that a user's turn matched the input policy. The session
// makes no call any more.
type HaltedError struct {
	Rejection writ.Rejection
	Reply     string // the operator's words to the user
}

func (e *HaltedError) Error() string { return "the input policy halts: " + string(e.Rejection.Reason) }

// Turn puts a user's turn on record as evidence labelled user, and returns its
// id. The caller is the host, on a channel of its own that names the session:
// nothing that came by way of the agent is ever handed to Turn. With an input
// policy a turn that matches it halts the session, with a *HaltedError.
func (g *Gateway) Turn(ctx context.Context, session downstream.Session, text string) (id string, err error) {
	s, err := g.loadedSession(ctx, session.PublicID())
	if err != nil {
		return "", err
	}
	for try := 0; ; try++ {
		id, err = g.turn(s, text)
		if err == nil || try == 3 || !errors.Is(err, audit.ErrConflict) {
			return id, err
		}
	}
}

func (g *Gateway) turn(s *session, text string) (id string, err error) {
	s.mu.Lock()
	if err := s.outdated; err != nil && !g.refold(s) {
		s.mu.Unlock()
		return "", err
	}
	if s.closed {
		s.mu.Unlock()
		return "", errNotRecorded
	}
	now := g.now()
	if err := g.lapse(s, now); err != nil {
		s.mu.Unlock()
		return "", err
	}
	data := turnData{Evidence: s.evidence.Next()}
	var halted *HaltedError
	if g.screen != nil {
		if v := g.screen.Check(text); v.Halt() {
			data.Halted = v.Rejection()
			halted = &HaltedError{*data.Halted, v.Reply}
		}
	}
	obs := s.evidence.Turn(data.Evidence, []byte(text), now)
	data.Admissible, data.Why = obs.Admissible, obs.Why
	_, done, err := g.write(s, powerCut, KindTurn, now, data, value{valueTurn, []byte(text)})
	if err == nil {
		s.evidence.Commit(obs)
		if data.Halted != nil {
			s.halted = data.Halted
		}
		s.active = now
	}
	s.mu.Unlock()
	if err == nil {
		err = <-done
	}
	if err != nil {
		return "", err
	}
	id = writ.EvidenceID{Session: s.id, Number: data.Evidence}.String()
	if halted != nil {
		return id, halted
	}
	return id, nil
}

// SessionNamed finds an open session by its public id, whoever carries it: for
// the person at the state directory, to speak in it or to reopen it. It is never
// reached from a client's side, where a session is its secret.
func (g *Gateway) SessionNamed(ctx context.Context, id string) (downstream.Session, error) {
	reg, err := g.sessions.SessionByID(ctx, id)
	if errors.Is(err, audit.ErrNotFound) || err == nil && ended(reg, g.now()) {
		return nil, downstream.ErrNoSession
	}
	if err == nil {
		_, err = g.loadedSession(ctx, id)
	}
	if err != nil {
		g.complain(ctx, "a session could not be restored", id, err)
		return nil, err
	}
	return handle{id}, nil
}

// Reopen lifts what too many guesses closed in a session (R24). The caller is
// a person: nothing that came by way of the agent ever causes it.
func (g *Gateway) Reopen(ctx context.Context, session downstream.Session) error {
	s, err := g.loadedSession(ctx, session.PublicID())
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		if err = g.reopen(s); err == nil || try == 3 || !errors.Is(err, audit.ErrConflict) {
			return err
		}
	}
}

func (g *Gateway) reopen(s *session) error {
	s.mu.Lock()
	if err := s.outdated; err != nil && !g.refold(s) {
		s.mu.Unlock()
		return err
	}
	if s.closed {
		s.mu.Unlock()
		return errNotRecorded
	}
	_, done, err := g.write(s, powerCut, KindReopen, g.now(), struct{}{})
	if err == nil {
		s.evidence.Reopen()
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return <-done
}

// lapse ends the user's turns of a session that rested too long. The caller
// holds s.mu.
func (g *Gateway) lapse(s *session, now time.Time) error {
	if s.evidence == nil || s.evidence.Turns() == 0 || now.Sub(s.active) <= turnLapse {
		return nil
	}
	_, _, err := g.write(s, withNext, KindLapse, now, struct{}{})
	if err == nil {
		s.evidence.Lapse()
	}
	return err
}

// turn folds a recorded turn.
func (f *Replayer) turn(rec *audit.Record, it *audit.Item) error {
	var data turnData
	if err := json.Unmarshal(rec.Data, &data); err != nil {
		return fmt.Errorf("turn: %w", err)
	}
	if data.Halted != nil {
		f.halted = data.Halted
	}
	text, _ := it.Value(valueTurn)
	if f.screen != nil && f.halted == nil {
		// Whoever took the turn in may have had another input policy, or none.
		if v := f.screen.Check(string(text)); v.Halt() {
			f.halted = v.Rejection()
		}
	}
	if f.blind || f.session == nil {
		return nil
	}
	obs := f.session.Turn(data.Evidence, notNil(text), rec.Time)
	if obs.Admissible != data.Admissible {
		return fmt.Errorf("%w: the turn's worth (n %d)", ErrReplay, rec.N)
	}
	f.session.Commit(obs)
	return nil
}
