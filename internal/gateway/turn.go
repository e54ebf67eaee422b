package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/learn"
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

type turnData struct {
	Evidence   uint32 `json:"evidence"`
	Admissible bool   `json:"admissible"`
	Why        string `json:"why,omitempty"`
	// Zone is how many seconds the clocks of who typed are ahead of UTC: what he
	// says of days and times is counted by them (R10).
	Zone int `json:"zone,omitempty"`
	// Halted is the input policy's rejection; the session makes no call after it.
	Halted *writ.Rejection `json:"halted,omitempty"`
}

// said is when a turn was typed, by the clocks of who did.
func (d *turnData) said(at time.Time) time.Time {
	if d.Zone == 0 {
		return at.UTC()
	}
	return at.In(time.FixedZone("", d.Zone))
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
func (ss *sessions) Turn(ctx context.Context, in downstream.Session, text string) (id string, err error) {
	return ss.TurnOf(ctx, in, "", text)
}

// TurnOf is Turn where the host has a name for the conversation, at most 200 bytes; ""
// is that it has none.
func (ss *sessions) TurnOf(ctx context.Context, in downstream.Session, conversation, text string) (id string, err error) {
	var data turnData
	var halted *HaltedError
	_, err = ss.recordIn(ctx, in.PublicID(), func(s *session) (*receipt, error) {
		now := ss.now()
		if _, err := ss.lapse(s, now, conversation); err != nil {
			return nil, err
		}
		_, zone := ss.clock().Zone()
		data, halted = turnData{Evidence: s.evidence.Next(), Zone: zone}, nil
		input := ss.screen.Load()
		if screenID(input) != s.screened {
			s.unscreened = true
		}
		if input != nil {
			if v := input.Check(text); v.Halt() {
				data.Halted = v.Rejection()
				halted = &HaltedError{*data.Halted, v.Reply}
			}
		}
		obs := s.evidence.Turn(data.Evidence, []byte(text), data.said(now))
		data.Admissible, data.Why = obs.Admissible, obs.Why
		rec, err := ss.write(s, powerCut, KindTurn, now, data, value{valueTurn, []byte(text)})
		if err == nil {
			s.evidence.Commit(obs)
			ss.warnOfRoom(s)
			if data.Halted != nil {
				s.halted = data.Halted
			}
			s.active = now
		}
		return rec, err
	})
	if err != nil {
		return "", err
	}
	id = writ.EvidenceID{Session: in.PublicID(), Number: data.Evidence}.String()
	if halted != nil {
		return id, halted
	}
	return id, nil
}

// Reopen lifts what too many guesses closed in a session (R24). The caller is
// a person: nothing that came by way of the agent ever causes it.
func (ss *sessions) Reopen(ctx context.Context, in downstream.Session) error {
	_, err := ss.recordIn(ctx, in.PublicID(), func(s *session) (*receipt, error) {
		rec, err := ss.write(s, powerCut, KindReopen, ss.now(), struct{}{})
		if err == nil {
			s.evidence.Reopen()
		}
		return rec, err
	})
	return err
}

// Converse says that the host goes on in the conversation of that name. What was typed in
// another vouches for nothing more; calls of servers' tools, which name none, go by the
// newest.
func (ss *sessions) Converse(ctx context.Context, in downstream.Session, conversation string) error {
	_, err := ss.recordIn(ctx, in.PublicID(), func(s *session) (rec *receipt, err error) {
		s.told = true
		return ss.lapse(s, ss.now(), conversation)
	})
	return err
}

// Unheard reports whether servers' tools were called in a session whose host told nothing
// in it: neither what its user types nor what it does itself, nor in which conversation.
func (ss *sessions) Unheard(ctx context.Context, in downstream.Session) (unheard bool, err error) {
	s, err := ss.get(ctx, in.PublicID())
	if err != nil {
		return false, err
	}
	err = ss.with(s, func() error {
		unheard = s.called && !s.told && s.conversation == "" && s.evidence != nil && s.evidence.Turns() == 0
		return nil
	})
	return unheard, err
}

type lapseData struct {
	// Conversation is a digest of the name of the one that begins, "" where the same one
	// goes on.
	Conversation string `json:"conversation,omitempty"`
}

// lapse ends the user's turns of a session that rested too long, or whose host says that
// this is another conversation. It returns the record, nil for none. The caller holds s.mu.
func (ss *sessions) lapse(s *session, now time.Time, conversation string) (*receipt, error) {
	var data lapseData
	if conversation != "" {
		sum := sha256.Sum256([]byte(conversation))
		data.Conversation = hex.EncodeToString(sum[:8])
	}
	if data.Conversation == s.conversation {
		data.Conversation = ""
	}
	if s.evidence == nil || data.Conversation == "" && (s.evidence.Turns() == 0 || now.Sub(s.active) <= turnLapse) {
		return nil, nil
	}
	rec, err := ss.write(s, processEnd, KindLapse, now, data)
	if err == nil {
		s.evidence.Lapse()
		s.conversation = cmp.Or(data.Conversation, s.conversation)
	}
	return rec, err
}

// turn folds a recorded turn.
func (r *Replayer) turn(rec *audit.Record, it *audit.Item) error {
	var data turnData
	if err := json.Unmarshal(rec.Data, &data); err != nil {
		return fmt.Errorf("turn: %w", err)
	}
	if data.Halted != nil {
		r.halted = data.Halted
	}
	text, _ := it.Value(valueTurn)
	if r.screen != nil && r.halted == nil {
		// Whoever took the turn in may have had another input policy, or none.
		if v := r.screen.Check(string(text)); v.Halt() {
			r.halted = v.Rejection()
		}
	}
	if r.blind || r.session == nil {
		return nil
	}
	typed := notNil(text)
	obs := r.session.NoRoom(data.Evidence)
	if data.Admissible || data.Why != gate.WhyFull {
		obs = r.session.Turn(data.Evidence, typed, data.said(rec.Time))
	}
	if obs.Admissible != data.Admissible {
		return fmt.Errorf("%w: the turn's worth (n %d)", ErrReplay, rec.N)
	}
	r.session.Commit(obs)
	r.learns.add(learn.Step{Turn: &learn.Turn{Text: typed, At: data.said(rec.Time), Full: !data.Admissible && data.Why == gate.WhyFull}})
	if r.certificates != nil && data.Admissible {
		r.certificates.Turn(data.Evidence, string(text), data.said(rec.Time))
	}
	return nil
}
