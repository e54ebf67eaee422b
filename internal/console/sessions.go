package console

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/story"
)

// maxSessions bounds the rows of a page: those that were used last.
const maxSessions = 200

// sessionsPage are the registered sessions, the one that was used last first.
type sessionsPage struct {
	Words string // that the name, the id or the principal holds
	Rows  []sessionRow
	Left  int // that are not shown
}

type sessionRow struct {
	audit.Session
	Name    string
	Used    time.Time
	Records uint64
}

func (s *sessionRow) holds(words string) bool {
	return slices.ContainsFunc([]string{s.Name, s.ID, s.Principal}, func(text string) bool { return strings.Contains(strings.ToLower(text), words) })
}

func (c *Console) sessions(x *request) error {
	ctx := x.Context()
	p, names := &sessionsPage{Words: x.asked("words")}, c.o.Names(ctx)
	words := strings.ToLower(strings.TrimSpace(p.Words))
	later := func(a, b sessionRow) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.ID, b.ID)) }
	for s, err := range c.o.Sessions(ctx) {
		if err != nil {
			return err
		}
		one := sessionRow{Session: s, Name: names[s.ID], Used: s.LastUsed}
		if one.Used.Before(s.Created) {
			one.Used = s.Created // it was never used
		}
		if !one.holds(words) {
			continue
		}
		if p.Rows = append(p.Rows, one); len(p.Rows) == 2*maxSessions {
			slices.SortFunc(p.Rows, later)
			p.Rows, p.Left = p.Rows[:maxSessions], p.Left+maxSessions
		}
	}
	slices.SortFunc(p.Rows, later)
	if n := len(p.Rows) - maxSessions; n > 0 {
		p.Rows, p.Left = p.Rows[:maxSessions], p.Left+n
	}
	for i := range p.Rows {
		row := &p.Rows[i]
		var err error
		if row.Records, err = c.o.Log.Head(ctx, row.ID); err != nil {
			return err
		}
		err = story.Each(c.o.Log.Read(ctx, row.ID, row.Records), func(_ *audit.Item, rec *audit.Record) { // the register is told now and then
			if rec.Time.After(row.Used) {
				row.Used = rec.Time
			}
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(p.Rows, later)
	return c.show(x, http.StatusOK, "sessions.html", "Sessions", p)
}
