package memoryserver

import (
	"context"
	"slices"
	"strings"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/internal/text"
	"github.com/writ-project/writ/memory"
)

// A fact that an agent wants kept is rarely worded as it was said. What is kept
// is what was said: the sentence, or the record, of this session that has the
// words of the fact. Which one is found decides nothing about whether it is true:
// it is shown as it stands, and with its own trust.

// find looks for what a remembered fact rests on: nothing, if no sentence and no
// record of the session has its words. Of equals the newest is it; of what a tool
// returned both as data and as text, the data. all is false where something was
// passed over.
func find(ctx context.Context, by gateway.Caller, fact, about string) (found []memory.Captured, all bool, err error) {
	s := memory.Sought(fact, about)
	var best ranked
	var data []ranked // records that somebody vouches for, the newest first
	all, err = by.Units(ctx, func(u *gateway.Unit) {
		r := ranked{*u, s.Weigh(&u.Unit, u.Label >= writ.System)}
		if r.rank == 0 {
			return
		}
		if u.Label >= writ.System && u.Record {
			data = append(data, r)
		}
		if r.rank > best.rank {
			best = r
		}
	})
	if err != nil {
		return nil, all, err
	}
	if best.rank == 0 {
		found, err = captureWhole(ctx, by, fact)
		return found, all, err
	}
	slices.SortStableFunc(data, func(a, b ranked) int { return b.rank - a.rank })
	if i := slices.IndexFunc(data, func(u ranked) bool { return copies(&best.Unit, &u.Unit) }); i >= 0 {
		best = data[i]
	}
	c := capturedBy(by, best.Captured)
	c.Text, c.Between = withheld(best.Unit.Unit.Wide, best.Withheld), true
	value := s.Value(&best.Unit.Unit)
	if value == best.Text {
		value = c.Text // all of it
	}
	c.Value = strictjson.Quote(value)
	for _, l := range best.Leaves {
		c.Leaves = append(c.Leaves, memory.Leaf{Pointer: l.Pointer, Type: string(l.Type), Collection: l.Collection})
	}
	return []memory.Captured{c}, all, nil
}

// ranked is a unit with how well it says the fact.
type ranked struct {
	gateway.Unit
	rank int
}

// captureWhole looks for a fact that is more than is taken apart together, as somebody said it.
func captureWhole(ctx context.Context, by gateway.Caller, fact string) ([]memory.Captured, error) {
	c, ok, err := by.Capture(ctx, 0, fact)
	if err != nil || !ok {
		return nil, err
	}
	out := capturedBy(by, c)
	if c.Whole {
		out.Text = fact
	}
	out.Offset = max(0, out.Offset-max(0, strings.Index(out.Text, fact))) // of the sentences it stands in
	out.Value = strictjson.Quote(out.Text)
	return []memory.Captured{out}, nil
}

const mostWithheld = 20

// memberName is the form of a member's name that is shown: anybody may have chosen it.
var memberName = text.Pattern(`^[A-Za-z][A-Za-z0-9_-]{0,31}$`)

// withheld is a record that says what was left out of it: before all else what may
// have said which thing it is.
func withheld(record string, names []string) string {
	if len(names) == 0 {
		return record
	}
	out := []byte("{}")
	mark := func(naming bool) {
		for i, name := range names {
			if i >= mostWithheld || !memberName().MatchString(name) {
				name = memory.LeftOut
			}
			if memory.MayName(name) == naming {
				out = strictjson.Set(out, name, strictjson.Quote(memory.LeftOut))
			}
		}
	}
	mark(true)
	ms, _ := strictjson.Members([]byte(record))
	for _, m := range ms {
		out = strictjson.Set(out, m.Name, m.Value)
	}
	mark(false)
	return string(out)
}

// copies reports whether one unit is a copy that nobody vouches for of a record in
// the same evidence: it holds all its values.
func copies(u, of *gateway.Unit) bool {
	if u.Label >= writ.System || u.Evidence != of.Evidence || !u.Record {
		return false
	}
	held, all := map[string]bool{}, true
	plain := func(leaf []byte) string { // however its text is escaped
		if t, ok := strictjson.Text(leaf); ok {
			return "\"" + t
		}
		return string(leaf)
	}
	strictjson.Walk([]byte(u.Text), func(_ []string, leaf []byte) bool { held[plain(leaf)] = true; return true }, nil)
	strictjson.Walk([]byte(of.Text), func(_ []string, leaf []byte) bool { all = all && held[plain(leaf)]; return all }, nil)
	return all
}
