package console

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/writ-project/writ/internal/story"
)

// check is the one check of the log that is under way, or was made last.
type check struct {
	running  bool
	done, of int64
	found    string
	ok       bool
	at       time.Time
}

// state says in words how it stands, "" where none was made.
func (c *check) state() string {
	switch {
	case c.running && c.of > 0:
		return fmt.Sprintf("Checking: record %d of %d.", c.done, c.of)
	case c.running:
		return "Checking."
	case c.at.IsZero():
		return ""
	case c.ok:
		return "Checked at " + c.at.Local().Format(time.DateTime) + ". " + c.found
	}
	return "At " + c.at.Local().Format(time.DateTime) + " something was wrong. " + c.found
}

type auditPage struct {
	Named   string // what was searched by name
	Check   string
	Good    bool
	Running bool
	Filter  filter
	Rows    *listing
	Turns   []turn // of the newest Counted records
	Policy  string // the SHA-256 of the one that the newest call was judged by
	Counted int
	Fault   string // why they are not known
}

type turn struct {
	story.Turn
	Lines     []diffLine
	MoreLines int
}

const maxTurns = 10

// audit searches the log: by a name, which leads to what it names, or by a filter.
func (c *Console) audit(x *request) error {
	p := auditPage{Named: strings.TrimSpace(x.asked("id"))}
	session, n, _ := strings.Cut(p.Named, "/")
	if ids := c.named(x.Context(), session); p.Named != "" && len(ids) > 0 {
		to := "/s/" + ids[0]
		if of, err := strconv.ParseUint(n, 10, 64); err == nil {
			to = fmt.Sprintf("/d/%s/%d", ids[0], of)
		}
		if len(ids) > 1 { // one that was closed had it before
			to = "/audit" + filter{Session: session}.query()
		}
		return x.leadTo(to)
	} else if p.Named != "" {
		return &refusal{http.StatusBadRequest, "No such name", "No session is kept under that name. Each has an id as well, s_…, and a decision is s_…/7."}
	}
	l, err := c.listed(x)
	if err != nil {
		return err
	}
	p.Filter, p.Rows = l.Filter, l
	if l.Live && l.Filter == (filter{}) {
		c.turned(x.Context(), &p)
	}
	c.mu.Lock()
	p.Check, p.Good, p.Running = c.check.state(), c.check.ok, c.check.running
	c.mu.Unlock()
	return c.show(x, http.StatusOK, "audit.html", "Audit", p)
}

// turned tells where calls came to be judged otherwise.
func (c *Console) turned(ctx context.Context, p *auditPage) {
	all, now, err := story.Turns(ctx, c.o.Log, maxCounted, maxTurns)
	if p.Policy, p.Counted = now, maxCounted; err != nil {
		p.Fault = err.Error()
	}
	for _, t := range all {
		one := turn{Turn: t}
		one.Lines, one.MoreLines = someLines(t.Lines)
		for _, pins := range []*[]story.Pin{&one.Pinned, &one.Changed} {
			*pins = (*pins)[:min(len(*pins), maxRules)]
		}
		p.Turns = append(p.Turns, one)
	}
}

// verify begins a check of the whole log. It goes on when its page is left.
func (c *Console) verify(x *request) error {
	c.mu.Lock()
	busy := c.check.running
	if !busy {
		c.check = check{running: true}
	}
	c.mu.Unlock()
	if busy {
		return errBusy
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.Context()))
	go func() {
		select {
		case <-c.o.Ending:
		case <-ctx.Done():
		}
		cancel()
	}()
	go func() {
		defer cancel()
		last, found, ok := time.Time{}, "", false
		err := contained("writ audit verify", func() (err error) {
			found, ok, err = c.o.Verify(ctx, func(done, of int64) {
				if now := c.o.Clock(); now.Sub(last) > 100*time.Millisecond {
					last = now
					c.mu.Lock()
					c.check.done, c.check.of = done, of
					c.mu.Unlock()
				}
			})
			return err
		})
		if err != nil {
			found, ok = err.Error(), false
		}
		c.mu.Lock()
		c.check = check{found: found, ok: ok, at: c.o.Clock()}
		c.mu.Unlock()
	}()
	return x.leadTo("/audit#check")
}

func (c *Console) exported(x *request) error {
	leave, err := c.export.take()
	if err != nil {
		return err
	}
	defer leave()
	x.download("writ-log.bundle", "application/octet-stream")
	ctx, cancel := context.WithTimeout(x.Context(), atMostExport)
	defer cancel()
	out := &steady{x.w, http.NewResponseController(x.w), ctx}
	over := make(chan struct{})
	go func() { // what holds a view of the log holds up erasure
		defer close(over)
		for on := true; on && !c.over(x.login); {
			select {
			case <-c.o.Ending:
				on = false
			case <-ctx.Done():
				on = false
			case <-x.login.ended:
			case <-time.After(lookEvery):
			}
		}
		cancel()
		out.at.SetWriteDeadline(time.Now()) // ends a write that is under way
	}()
	err = c.o.Export(ctx, out)
	if err == nil {
		err = ctx.Err()
	}
	cancel()
	<-over
	if err != nil {
		panic(http.ErrAbortHandler) // half a file must not look like a whole one
	}
	out.at.SetWriteDeadline(time.Time{})
	return nil
}

// Bounds of one download of the log: each piece of it, and all.
const (
	perPieceExport = 30 * time.Second
	atMostExport   = 15 * time.Minute
)

// steady is a writer to somebody who reads on, until its context is done.
type steady struct {
	w   io.Writer
	at  *http.ResponseController
	ctx context.Context
}

func (s *steady) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		s.at.SetWriteDeadline(time.Now().Add(perPieceExport))
		if s.ctx.Err() != nil {
			return n, s.ctx.Err()
		}
		k, err := s.w.Write(b[:min(len(b), 64<<10)])
		if n += k; err != nil {
			return n, err
		}
		b = b[k:]
	}
	return n, nil
}

func (c *Console) status(x *request) error {
	said, err := c.o.Status(x.Context())
	if err != nil {
		return err
	}
	return c.show(x, http.StatusOK, "health.html", "Health", parts(said))
}

// part is a line with those that stand below it.
type part struct {
	Head  string
	Lines []string
}

// parts are the lines of a printed text, each with those that are set in below it.
func parts(printed string) (out []part) {
	for _, line := range strings.Split(strings.TrimRight(printed, "\n"), "\n") {
		if below := strings.TrimSpace(line); strings.HasPrefix(line, " ") && len(out) > 0 {
			out[len(out)-1].Lines = append(out[len(out)-1].Lines, below)
		} else if below != "" {
			out = append(out, part{Head: below})
		}
	}
	return out
}
