package console

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
)

// Policy is the policy that is in force: one text, with what was kept from answers behind it.
type Policy struct {
	File     string // "" for the built-in example's
	Digest   string
	Source   []byte
	Findings []Finding
	Kept     []Kept
	Differs  string         // how its file is otherwise than what is in force, "" where it is the same
	Unlike   []cli.DiffLine // the lines by which it is
	Disk     []byte         // what stands in it then
	Takes    []string       // the lines of a terminal that take back what was kept, and put that in force
}

// Finding is what lint, or a server that is there, has to say of a line.
type Finding struct {
	Line int // from 1
	Text string
}

// Kept is what a person allowed from now on, in words.
type Kept struct {
	Words, By, At string
	Taken         bool // back in the file, and counts still
}

// Bounds of one page of a policy, whose text has maxDrawn bytes of it at most.
const (
	maxPolicyLines = 1000
	maxLine        = 2000
	maxKept        = 200
)

type policyPage struct {
	Policy
	Lines          []policyLine
	From, All      int
	Earlier, Later string
	MoreFindings   int
	MoreKept       int
	Unlike         []diffLine
	MoreUnlike     int
}

type policyLine struct {
	N        int
	Text     string
	Findings []string
}

func policyAt(line int) string { return fmt.Sprintf("/policy?at=%d#L%[1]d", line) }

// policy shows a part of the text in force, each finding beside its line.
func (c *Console) policy(x *request) error {
	from, at := x.place("from"), x.place("at")
	in, err := c.o.Policy(x.Context())
	if err != nil {
		return err
	}
	p := policyPage{Policy: *in, All: bytes.Count(bytes.TrimRight(in.Source, "\n"), []byte("\n")) + 1}
	if at > 0 && (p.All > maxPolicyLines || len(in.Source) > maxDrawn) { // with some lines before it
		from = at - 10
	}
	p.From = int(min(max(from, 1), int64(p.All)))
	p.Findings = slices.Clone(in.Findings)
	slices.SortStableFunc(p.Findings, func(a, b Finding) int { return a.Line - b.Line })
	beside := map[int][]string{}
	for _, f := range p.Findings {
		if n := len(beside[f.Line]); n < maxNotes {
			beside[f.Line] = append(beside[f.Line], f.Text)
		}
	}
	n, room := 0, maxDrawn
	for line := range bytes.Lines(in.Source) {
		if n++; n < p.From || n > p.All {
			continue
		}
		if len(p.Lines) == maxPolicyLines || room <= 0 {
			p.Later = fmt.Sprintf("/policy?from=%d", n)
			break
		}
		l := policyLine{n, clip(strings.TrimRight(string(line), "\r\n"), maxLine), beside[n]}
		for _, f := range l.Findings {
			room -= len(f)
		}
		room -= len(l.Text)
		p.Lines = append(p.Lines, l)
	}
	if p.From > 1 {
		p.Earlier = fmt.Sprintf("/policy?from=%d", max(1, p.From-maxPolicyLines))
	}
	p.MoreFindings, p.MoreKept = max(0, len(p.Findings)-maxRules), max(0, len(in.Kept)-maxKept)
	p.Findings = p.Findings[:len(p.Findings)-p.MoreFindings]
	p.Kept = in.Kept[:len(in.Kept)-p.MoreKept]
	p.Unlike, p.MoreUnlike = someLines(in.Unlike)
	return c.show(x, http.StatusOK, "policy.html", "Policy", p)
}

// someLines are the first of those by which two texts differ, and how many there are beside them.
func someLines(all []cli.DiffLine) (out []diffLine, more int) {
	others := map[int]string{} // of a line that changed, the other text
	for i := 0; i < len(all); i++ {
		gone, is := i, i
		for ; is < len(all) && all[is].Sign == "-"; is++ {
		}
		for i = is; i < len(all) && all[i].Sign == "+"; i++ {
			if from := gone + i - is; from < is {
				others[from], others[i] = all[i].Text, all[from].Text
			}
		}
		if i > gone {
			i--
		}
	}
	for room := maxDrawn / 4; len(out) < min(len(all), maxRules) && room > 0; {
		l := diffLine{DiffLine: all[len(out)]}
		if utf8.RuneCountInString(l.Text) > maxLine {
			other, changed := others[len(out)]
			l.cut(other, changed)
		}
		out, room = append(out, l), room-len(l.Text)-len(l.Rest)
	}
	return out, len(all) - len(out)
}

// diffLine is a line that differs, and how many characters of it are not shown: the same in both
// before and behind what is, and a hole, in which they may differ.
type diffLine struct {
	cli.DiffLine
	Before, Hole, Behind int
	Rest                 string // behind the hole
}

// cut leaves as much of a long line as there is room for: around what changed, where it did.
func (l *diffLine) cut(other string, changed bool) {
	const around = 200 // bytes
	s, from, to := l.Text, 0, len(l.Text)
	if changed {
		for from < min(len(s), len(other)) && s[from] == other[from] {
			from++
		}
		same := 0
		for same < min(len(s), len(other))-from && s[len(s)-1-same] == other[len(other)-1-same] {
			same++
		}
		from, to = max(0, from-around), min(len(s), to-same+around)
		for ; from > 0 && !utf8.RuneStart(s[from]); from-- {
		}
		for ; to < len(s) && !utf8.RuneStart(s[to]); to++ {
		}
	}
	l.Before, l.Behind = utf8.RuneCountInString(s[:from]), utf8.RuneCountInString(s[to:])
	l.Text = s[from:to]
	if r := []rune(l.Text); len(r) > maxLine {
		l.Text, l.Hole, l.Rest = string(r[:maxLine/2]), len(r)-maxLine, string(r[len(r)-maxLine/2:])
	}
}

// Replayed is what another policy's text comes to: its faults, or what it would have decided of
// recorded calls.
type Replayed struct {
	Faults        []Fault
	Before, After Verdicts
	Calls         int
	Redefined     int // calls more, under another definition of their tool than that policy pins
	Sessions      int
	Otherwise     []Difference
	Notes         []string
}

// Fault is a defect of a policy's text, with its place where it has one.
type Fault struct {
	Line, Column int
	Text         string
}

// Verdicts are how many calls a policy lets pass, puts to a person and refuses.
type Verdicts struct{ Passed, Asked, Refused int }

// tally is what a picture is made of.
func (v Verdicts) tally() *tally {
	return &tally{N: map[string]int{"accepted": v.Passed, "asked": v.Asked, "refused": v.Refused}}
}

// Difference is a call that would come out otherwise.
type Difference struct {
	Session       string
	N             uint64
	Tool          string
	Was, Becomes  string // words of the console's palette
	WasFor, IsFor string // reasons
	Follows       bool   // another of its session did before, which may be why

	Act, Whole string // as a row of a list has them
	Time       time.Time
	Called     string // its session
}

// ID names its decision.
func (d Difference) ID() string { return fmt.Sprintf("%s/%d", d.Session, d.N) }

// Bounds of a replay: the text of a policy, what is sent around it, and how long nobody may look
// at one that is under way.
const (
	maxPolicyText = 1 << 20
	maxReplay     = 5 * time.Minute
	unwatched     = 30 * time.Second
	maxOtherwise  = 200
	maxFaults     = 50
)

// replay is one policy's text, judged by a login over what was recorded. The console's mutex
// guards it.
type replay struct {
	text     []byte
	done, of int
	seen     time.Time
	watching int
	over     chan struct{} // is closed when it ended
	stop     context.CancelFunc
	result   *Replayed
	fault    string
}

func (t *replay) running() bool {
	select {
	case <-t.over:
		return false
	default:
		return true
	}
}

// state says in words how it stands.
func (t *replay) state() string {
	switch {
	case t == nil:
		return ""
	case !t.running():
		return "Replayed."
	case t.of == 0:
		return "Checking what was recorded."
	}
	return fmt.Sprintf("Checking: session %d of %d.", t.done, t.of)
}

type replayPage struct {
	*Replayed
	State, Fault  string
	Running       bool
	Text          string
	InForce       bool // it is what is in force
	OfFile        bool // it is what stands in the file, and is not in force
	Before, After *tally
	Lines         map[int]string // those with faults
	MoreFaults    int
	More          int
}

var errNoPolicy = &refusal{http.StatusBadRequest, "No policy", "Paste the text of a policy, or choose its file; it has 1 MiB at most. Nothing was judged."}

// Follows reports whether a difference follows another.
func (p *replayPage) Follows() bool {
	return slices.ContainsFunc(p.Otherwise, func(d Difference) bool { return d.Follows })
}

// replayed shows the form for a policy's text, and what the last one of this login came to.
func (c *Console) replayed(x *request) error {
	p := replayPage{}
	c.mu.Lock()
	t := x.login.replay
	if t != nil {
		t.seen = c.o.Clock()
		p.State, p.Running, p.Fault, p.Replayed, p.Text = t.state(), t.running(), t.fault, t.result, string(t.text)
	}
	c.mu.Unlock()
	if t == nil { // to begin with
		var in *Policy
		err := c.health.during(func(*request) (err error) {
			in, err = c.o.Policy(x.Context())
			return err
		})(x)
		if err != nil {
			return err
		}
		if text := cmp.Or(string(in.Disk), string(in.Source)); len(text) <= maxDrawn {
			p.Text, p.OfFile, p.InForce = text, len(in.Disk) > 0, len(in.Disk) == 0
		}
	}
	if p.Replayed != nil {
		r := *p.Replayed
		p.Replayed, p.Lines = &r, map[int]string{}
		p.Before, p.After = r.Before.tally(), r.After.tally()
		p.More, p.MoreFaults = max(0, len(r.Otherwise)-maxOtherwise), max(0, len(r.Faults)-maxFaults)
		r.Otherwise, r.Faults = r.Otherwise[:len(r.Otherwise)-p.More], r.Faults[:len(r.Faults)-p.MoreFaults]
		n := 0
		for line := range bytes.Lines([]byte(p.Text)) {
			n++
			for _, f := range r.Faults {
				if f.Line == n {
					p.Lines[n] = clip(string(bytes.TrimRight(line, "\n")), 200)
				}
			}
		}
	}
	return c.show(x, http.StatusOK, "replay.html", "A policy, replayed", &p)
}

// replays begins to judge a policy's text. It is written nowhere, and ends with whoever wants
// to know.
func (c *Console) replays(x *request) error {
	text := bytes.ReplaceAll([]byte(x.PostForm.Get("text")), []byte("\r\n"), []byte("\n")) // as a browser sends it
	if f, _, err := x.FormFile("file"); err == nil {
		b, err := io.ReadAll(f)
		if f.Close(); err != nil {
			return errNoPolicy
		}
		if len(b) > 0 {
			text = b
		}
	}
	if len(bytes.TrimSpace(text)) == 0 || len(text) > maxPolicyText {
		return errNoPolicy
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.Context()), maxReplay)
	t := &replay{text: text, seen: c.o.Clock(), over: make(chan struct{}), stop: cancel}
	for {
		c.mu.Lock()
		under := c.replay
		if under == nil || !under.running() {
			c.replay, x.login.replay = t, t
			c.mu.Unlock()
			break
		}
		mine := x.login.replay == under
		c.mu.Unlock()
		if !mine {
			cancel()
			return errBusy
		}
		under.stop() // he wants to know something else
		select {
		case <-under.over:
		case <-x.Context().Done():
			cancel()
			return errBusy
		}
	}
	go c.judge(ctx, t, x.login)
	return x.leadTo("/policy/replay")
}

func (c *Console) judge(ctx context.Context, t *replay, in *login) {
	defer t.stop()
	left := make(chan struct{})
	go func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-c.o.Ending:
			case <-in.ended:
			case <-tick.C:
				c.mu.Lock()
				alone := t.watching == 0 && c.o.Clock().Sub(t.seen) > unwatched
				c.mu.Unlock()
				if !alone {
					continue
				}
			}
			close(left)
			t.stop()
			return
		}
	}()
	var r *Replayed
	err := contained("writ audit replay", func() (err error) {
		r, err = c.o.Replay(ctx, t.text, func(done, of int) {
			c.mu.Lock()
			t.done, t.of = done, of
			c.mu.Unlock()
		})
		if err == nil {
			c.acted(ctx, r.Otherwise[:min(len(r.Otherwise), maxOtherwise)])
		}
		return err
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(t.over)
	select {
	case <-left:
		t.fault = "It was ended, because nobody looked at it any more."
	default:
		if t.result = r; err != nil {
			t.result, t.fault = nil, err.Error()
		}
		if ctx.Err() != nil {
			t.fault = "It took longer than " + maxReplay.String() + ", or another took its place: writ audit replay takes its time."
		}
	}
}

// acted finds what calls acted on, and when and where they were made. Of a record that
// cannot be read, or was erased, nothing is told.
func (c *Console) acted(ctx context.Context, calls []Difference) {
	rows := make([]*row, len(calls))
	for i := range calls {
		rows[i] = &row{rec: &audit.Record{}}
		if r, err := c.record(ctx, calls[i].Session, calls[i].N); err == nil {
			rows[i].rec = r.Record
		}
	}
	c.fill(ctx, rows, nil)
	names := c.o.Names(ctx)
	for i := range rows {
		calls[i].Act, calls[i].Whole = rows[i].Act, rows[i].Whole
		calls[i].Time, calls[i].Called = rows[i].rec.Time, cmp.Or(clip(names[calls[i].Session], 20), calls[i].Session)
	}
}

// watch says that a page of a replay is open, until leave is called.
func (c *Console) watch(t *replay) (leave func()) {
	count := func(n int) {
		c.mu.Lock()
		t.watching += n
		t.seen = c.o.Clock()
		c.mu.Unlock()
	}
	count(1)
	return func() { count(-1) }
}
