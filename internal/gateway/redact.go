package gateway

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/snapshot"
)

type redactData struct {
	Archive string `json:"archive,omitempty"` // SHA-256 of the file that they were written to
	Why     string `json:"why"`               // a word of the operator's
}

// The errors of a redaction.
var (
	// ErrOpen says that a session may go on.
	ErrOpen = errors.New("the session is open")
	// ErrAlteredSession says that a session is not what was written: it is evidence of that.
	ErrAlteredSession = errors.New("the session was altered on disk")
)

// Ended is a session that may be redacted.
type Ended struct {
	Session string
	Last    time.Time // when it was used last, or closed
	Records uint64
	// Redacted says that it is on record, Left that its values are there all the same:
	// it was cut off.
	Redacted, Left bool
}

// EndedSessions yields the sessions of a log that have ended by now, those of requests
// without one too: these have ended when nothing was recorded in them for a day.
func EndedSessions(ctx context.Context, st Store, now time.Time) iter.Seq2[Ended, error] {
	return func(yield func(Ended, error) bool) {
		for h, err := range st.Heads(ctx) {
			e := Ended{}
			if err == nil {
				e, err = EndedSession(ctx, st, h.Session, now)
			}
			if errors.Is(err, audit.ErrNotFound) || errors.Is(err, ErrOpen) || errors.Is(err, ErrAlteredSession) {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// EndedSession is one of EndedSessions. The error says why it is none: ErrOpen,
// ErrAlteredSession, or audit.ErrNotFound of what is no session.
func EndedSession(ctx context.Context, st Store, id string, now time.Time) (e Ended, err error) {
	e.Session = id
	if !isSession(id) {
		return e, audit.ErrNotFound
	}
	if e.Records, err = st.Head(ctx, id); err == nil && e.Records == 0 {
		err = audit.ErrNotFound
	}
	if err != nil {
		return e, err
	}
	for rec, err := range recordsFrom(ctx, st, id, max(e.Records-1, 1)) {
		if errors.Is(err, audit.ErrAltered) {
			return e, ErrAlteredSession
		} else if err != nil {
			return e, err
		}
		if rec.Kind != audit.KindClose || rec.Time.Sub(e.Last) <= sessionIdle { // else it was over, and is closed to be redacted
			e.Last = rec.Time
		}
		e.Redacted = rec.Kind == audit.KindRedact
	}
	if e.Redacted {
		_, err := st.Value(ctx, id, 1, valueKey)
		if e.Left = err == nil; errors.Is(err, audit.ErrNotFound) {
			err = nil
		}
		return e, err
	}
	if data, _, err := closedBy(ctx, st, id, e.Records); err != nil {
		return e, err
	} else if data.Why == closedAltered {
		return e, ErrAlteredSession
	}
	switch reg, err := st.SessionByID(ctx, id); {
	case errors.Is(err, audit.ErrNotFound):
		if now.Sub(e.Last) <= sessionIdle {
			return e, ErrOpen
		}
	case err != nil:
		return e, err
	default:
		if over, err := HasEnded(ctx, st, reg, now); err != nil || !over {
			return e, cmp.Or(err, ErrOpen)
		}
		if reg.LastUsed.After(e.Last) {
			e.Last = reg.LastUsed
		}
	}
	return e, nil
}

// Redact takes the values of an ended session out of the log for good: its arguments,
// results, turns and answers, and what a decision about them was made from. The log
// still verifies; the decisions are not made again any more, and which tool was called
// when, with what effect and outcome, stays. Of a session that is redacted it finishes
// what was cut off. Its snapshot goes first. why is a word that stays on record. All of the
// session is read before it: the error is ErrAlteredSession where any of it was altered.
func Redact(ctx context.Context, st Store, kept *snapshot.Dir, id, why string, now time.Time) (n uint64, err error) {
	for {
		e, err := EndedSession(ctx, st, id, now)
		if err == nil && !e.Redacted {
			e.Records, err = unaltered(ctx, st, id)
		}
		if err != nil {
			return 0, err
		}
		if n, err = redact(ctx, st, kept, id, e.Records, redactData{Why: why}, now); !errors.Is(err, audit.ErrConflict) {
			return n, err
		} // it was closed meanwhile
	}
}

// unaltered reads all of a session that is not redacted, and returns how many records it has.
func unaltered(ctx context.Context, st Store, id string) (n uint64, err error) {
	for rec, err := range recordsFrom(ctx, st, id, 1) {
		if errors.Is(err, audit.ErrAltered) {
			return 0, ErrAlteredSession
		} else if err != nil {
			return 0, err
		}
		n = rec.N
		for _, c := range rec.Commit {
			if _, there := rec.item.Value(c.Name); there {
				continue
			}
			if gone, err := isRedacted(ctx, st, id); err != nil {
				return 0, err
			} else if gone { // meanwhile
				return 0, audit.ErrConflict
			}
			return 0, ErrAlteredSession
		}
	}
	return n, nil
}

// redact is Redact of a session of which somebody looked at that many records. The error is
// audit.ErrConflict, and nothing is gone, where it has others by now.
func redact(ctx context.Context, st Store, kept *snapshot.Dir, id string, records uint64, data redactData, now time.Time) (n uint64, err error) {
	now = now.UTC().Truncate(time.Microsecond)
	e, err := EndedSession(ctx, st, id, now)
	n = e.Records
	if err == nil && !e.Redacted {
		if n, err = endForGood(ctx, st, id, records, now); err == nil {
			n, err = lastBehind(ctx, st, id, n, audit.KindRedact, now, data)
		}
	}
	if err != nil {
		return 0, err
	}
	if kept != nil { // a gateway that writes one now finds that the session is over
		if err := kept.Drop(id); err != nil {
			return 0, errors.New("its snapshot cannot be removed")
		}
	}
	all := make([]uint64, n)
	for i := range all {
		all[i] = uint64(i) + 1
	}
	return n, st.Erase(ctx, id, all...)
}

// endForGood closes a session that has ended with that many records, that of requests without
// one too, and returns the number of its last. The error is audit.ErrConflict where it has others.
func endForGood(ctx context.Context, st Store, id string, records uint64, now time.Time) (n uint64, err error) {
	if n, err := st.Head(ctx, id); err != nil || n != records {
		return 0, cmp.Or(err, audit.ErrConflict)
	}
	if err := st.CloseSession(ctx, id, now); err != nil && !errors.Is(err, audit.ErrNotFound) { // of requests without a session
		return 0, err
	}
	return lastBehind(ctx, st, id, records, audit.KindClose, now, closeData{})
}

// isSession reports whether an id can be a session's, and of no sequence of another kind:
// see placesPrefix.
func isSession(id string) bool { return audit.ValidSession(id) && !strings.Contains(id, "-") }

// isRedacted reports whether the last record of a session says that its values are gone.
func isRedacted(ctx context.Context, st placesStore, id string) (bool, error) {
	n, err := st.Head(ctx, id)
	if err != nil || n == 0 {
		return false, err
	}
	for rec, err := range recordsFrom(ctx, st, id, n) {
		return err == nil && rec.Kind == audit.KindRedact, err
	}
	return false, nil
}
