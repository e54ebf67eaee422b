package approval

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
)

// TestQueue: one question for one call, one answer for one question, and nothing
// but a recorded answer ends it.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(time.Now)
		of := Question{Session: "s_a", Server: "mail", Tool: "send"}
		recorded := 0
		record := func(a Answer) error { recorded++; return nil }
		ctx := t.Context()

		// Nobody answers: it stands open, and ends.
		if got, err := q.Ask(ctx, of, "act-1", Waits, record, nil); got != gate.Pending || err != nil {
			t.Fatal(got, err)
		}
		open, _ := q.Open()
		if len(open) != 1 || open[0].ID == "" {
			t.Fatalf("%+v", open)
		}
		first := open[0].ID

		// The same call again waits for the same answer; another has its own.
		type end struct {
			asked gate.Asked
			err   error
		}
		ends := make(chan end, 2)
		for range 2 {
			go func() {
				a, err := q.Ask(ctx, of, "act-1", Waits, record, nil)
				ends <- end{a, err}
			}()
		}
		synctest.Wait()
		if open, _ = q.Open(); len(open) != 1 || open[0].ID != first {
			t.Fatalf("%+v", open)
		}
		if _, err := q.Answer("nothing", Answer{Yes: true}); !errors.Is(err, ErrUnknown) {
			t.Fatal(err)
		}
		if _, err := q.Answer(first, Answer{Yes: true, By: "kim", Label: writ.User}); err != nil || recorded != 1 {
			t.Fatal(err, recorded)
		}
		for range 2 {
			if e := <-ends; e.asked != gate.NotAsked || e.err != nil {
				t.Fatal(e)
			}
		}
		// Who comes second is told who was first.
		if _, err := q.Answer(first, Answer{}); !errors.Is(err, ErrAnswered) {
			t.Fatal(err)
		}
		if a, ok := q.Said(first); !ok || !a.Yes || a.By != "kim" {
			t.Fatal(a, ok)
		}

		// An answer that is not on record is none.
		broken := errors.New("disk")
		go func() {
			a, err := q.Ask(ctx, of, "act-2", Waits, func(Answer) error { return broken }, nil)
			ends <- end{a, err}
		}()
		synctest.Wait()
		open, _ = q.Open()
		if _, err := q.Answer(open[0].ID, Answer{Yes: true}); !errors.Is(err, broken) {
			t.Fatal(err)
		}
		if e := <-ends; !errors.Is(e.err, broken) {
			t.Fatal(e)
		}

		// A question ends; who waits for it is told so.
		go func() {
			time.Sleep(Stands - time.Second)
			a, err := q.Ask(ctx, of, "act-3", Waits, record, nil)
			ends <- end{a, err}
		}()
		if got, _ := q.Ask(ctx, of, "act-3", 0, record, nil); got != gate.Pending {
			t.Fatal(got)
		}
		if e := <-ends; e.asked != gate.Expired {
			t.Fatal(e)
		}

		// A session has so many, and no more.
		for i := range maxSession + 1 {
			got, _ := q.Ask(ctx, of, string(rune('a'+i)), 0, record, nil)
			if want := gate.Pending; i == maxSession {
				if got != gate.NotAsked {
					t.Fatal(i, got)
				}
			} else if got != want {
				t.Fatal(i, got)
			}
		}
		// A client that goes away leaves its question open.
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if got, _ := q.Ask(gone, Question{Session: "s_b"}, "x", Waits, record, nil); got != gate.Pending {
			t.Fatal(got)
		}
		if q.Watched() {
			t.Fatal("nobody watches")
		}
		leave := q.There()
		if leave2 := q.There(); !q.Watched() {
			t.Fatal("somebody watches")
		} else {
			leave2()
			leave2()
		}
		if !q.Watched() {
			t.Fatal("one of two still watches")
		}
		if leave(); q.Watched() {
			t.Fatal("all have left")
		}
	})
}
