package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
)

// Memory is what is remembered, as the operator's own commands read it. at is the time as of
// which something is read, the zero one for now.
type Memory interface {
	// Namespaces are those of the state directory, the mounted one first; Has says of one name
	// whether it is one.
	Namespaces(ctx context.Context) ([]Namespace, error)
	Has(ctx context.Context, namespace string) (bool, error)
	// Made are what the records from … to-1 of a namespace made, the newest first: what is
	// believed in one word, or with "" in any.
	Made(ctx context.Context, namespace string, at time.Time, from, to uint64, word string) ([]Claim, error)
	// Found are quotes by their words, of what is only reported too; note says what is not among them.
	Found(ctx context.Context, namespace string, at time.Time, words string) (all []Claim, note []string, err error)
	// Belief is all there is to say of one of them, nil where there is none. Its timeline
	// begins at a record.
	Belief(ctx context.Context, namespace, id string, at time.Time, from uint64) (*Belief, error)
	Sources(ctx context.Context, namespace string) ([]Source, error)
	// Receipt is the signed one of an erasure.
	Receipt(ctx context.Context, namespace, id string) ([]byte, error)
}

// Namespace is one memory.
type Namespace struct {
	Name    string
	Records uint64
	Mode    string
	Policy  string
	Mounted bool // in the gateway that serves the console
}

// memoryWords are those of what is remembered: what a claim is worth, and erasures.
var memoryWords = []string{"established", "contested", "reported", "unverified", "replaced", "erased", "erasure"}

// Claim is one thing that is remembered, or an erasure. What others said in it is theirs.
type Claim struct {
	ID, Word string
	N        uint64 // of its record
	At       time.Time
	About    string // the question that it answers, and the value
	Value    string
	Quote    string // the words that it rests on
	Caption  string // how the model puts it, which vouches for nothing
	By       string // who said it, and by which channel
	Note     string
	Beside   string // how the others of these ids stand to it
	Others   []string
}

// Belief is a claim with all it rests on.
type Belief struct {
	Claim
	Means    string // what its word means
	Because  string // the rule
	Said     []Statement
	Values   []Claim  // other values of its question
	Changes  []string // what would make it stand otherwise
	Facts    []Fact
	Timeline []Moment
	Later    uint64 // the record with which the timeline goes on, 0 where it ended
	Commands []Command
}

// Statement is one word on a claim.
type Statement struct {
	Quote, By, ID, Evidence string
	At                      time.Time
	Trust                   int
	Note                    string // why it does not count, or no more
	Erased                  bool   // its words, here
	Stands                  string // where these words are still, as s_…/ev4, "" where they are not known to be
}

// Fact is one more thing to say of it.
type Fact struct{ Name, Text string }

// Moment is what happened to it in one record.
type Moment struct {
	At      time.Time
	What    string
	Word    string // how it stood then, and why
	Because string
	Quote   string
}

// Command is what a terminal does of what no page does.
type Command struct{ Does, Line string }

// Source is a registered one.
type Source struct{ ID, Class, State, By string }

// Bounds of the pages of a memory: the records that are looked at for one page and at once,
// while nobody else gets at it, and sources.
const (
	maxMade    = 4 * atOnce
	perMade    = 64
	maxSources = 100
)

// memoryPage is a part of what is remembered in one namespace.
type memoryPage struct {
	Namespaces []Namespace
	In         *Namespace // the one that is shown, nil where there is none
	Word, Asks string
	AsOf       string
	Words      []string
	Rows       []Claim
	Notes      []string
	Older      string
	Searched   uint64
	Sources    []Source
	MoreSource int
}

// At is the address of one thing that is remembered.
func (p *memoryPage) At(id string) string { return memoryAt(p.In.Name, id, p.AsOf) }

func memoryAt(namespace, id, asOf string) string {
	to := "/memory/" + url.PathEscape(namespace) + "/" + url.PathEscape(id)
	if asOf != "" {
		to += "?as_of=" + url.QueryEscape(asOf)
	}
	return to
}

// memory shows what is remembered, the newest first.
func (c *Console) memory(x *request) error {
	at, err := x.asOf()
	if err != nil {
		return err
	}
	before := x.place("before")
	all, err := c.o.Memory.Namespaces(x.Context())
	if err != nil {
		return err
	}
	p := &memoryPage{Namespaces: all, Word: x.asked("word"), Asks: strings.TrimSpace(x.asked("q")), AsOf: x.asked("as_of"), Words: memoryWords}
	for i := range all {
		if p.In == nil && (x.asked("in") == "" || x.asked("in") == all[i].Name) {
			p.In = &all[i]
		}
	}
	switch {
	case len(all) == 0:
	case p.In == nil:
		return &refusal{http.StatusNotFound, "No such namespace", "The state directory has no memory of that name."}
	case p.Asks != "":
		p.Rows, p.Notes, err = c.o.Memory.Found(x.Context(), p.In.Name, at, p.Asks)
		if p.Word != "" {
			p.Rows = slices.DeleteFunc(p.Rows, func(r Claim) bool { return r.Word != p.Word })
		}
	default:
		if err = c.made(x.Context(), p, at, before); err == nil && before < 0 {
			p.Sources, err = c.o.Memory.Sources(x.Context(), p.In.Name)
			p.MoreSource = max(0, len(p.Sources)-maxSources)
			p.Sources = p.Sources[:len(p.Sources)-p.MoreSource]
		}
	}
	if err != nil {
		return err
	}
	return c.show(x, http.StatusOK, "memory.html", "Memory", p)
}

// made reads one page of what was remembered before a record, by the number of that.
func (c *Console) made(ctx context.Context, p *memoryPage, at time.Time, before int64) error {
	to := p.In.Records + 1
	if before >= 0 {
		to = min(to, uint64(before))
	}
	looked := 0
	for ; to > 1 && len(p.Rows) < perPage && looked < maxMade; looked += perMade {
		from := uint64(1)
		if to > perMade {
			from = to - perMade
		}
		rows, err := c.o.Memory.Made(ctx, p.In.Name, at, from, to, p.Word)
		if err != nil {
			return err
		}
		for i := range rows { // what one record made stands on one page
			if to = rows[i].N; len(p.Rows) >= perPage && to != p.Rows[len(p.Rows)-1].N {
				to++
				break
			}
			p.Rows = append(p.Rows, rows[i])
		}
		if len(p.Rows) < perPage {
			to = from
		}
	}
	if to > 1 {
		p.Older = "/memory?" + given("before", strconv.FormatUint(to, 10), "in", p.In.Name, "word", p.Word, "as_of", p.AsOf)
		if len(p.Rows) < perPage {
			p.Searched = to
		}
	}
	return nil
}

// asOf reads the time of a query as of which a memory is read.
func (x *request) asOf() (at time.Time, err error) {
	v := strings.TrimSpace(x.asked("as_of"))
	if v == "" {
		return at, nil
	}
	for _, form := range []string{time.RFC3339Nano, time.DateTime, "2006-01-02 15:04", "2006-01-02T15:04", time.DateOnly} {
		if at, err = time.ParseInLocation(form, v, time.Local); err == nil && at.Year() >= 1970 && at.Year() < 10000 {
			if form == time.DateOnly { // all of that day
				at = at.AddDate(0, 0, 1).Add(-time.Microsecond)
			}
			return at, nil
		}
	}
	return at, &refusal{http.StatusBadRequest, "No such time", "A time is written 2026-11-24 or 2026-11-24 15:04, or as a timeline here writes it."}
}

// beliefPage is one thing that is remembered.
type beliefPage struct {
	*Belief
	Namespace string
	AsOf      string
	Story     string // the address of the timeline's next part
}

// Link is the address of another of the same memory.
func (p *beliefPage) Link(id string) string { return memoryAt(p.Namespace, id, p.AsOf) }

// Then is the address of this one as of a moment, and its own words for that.
func (p *beliefPage) Then(at time.Time) string {
	return memoryAt(p.Namespace, p.ID, at.UTC().Format(time.RFC3339Nano))
}

func (c *Console) belief(x *request) error {
	at, err := x.asOf()
	if err != nil {
		return err
	}
	p := &beliefPage{Namespace: x.PathValue("namespace"), AsOf: x.asked("as_of")}
	if err := c.remembers(x.Context(), p.Namespace); err != nil {
		return err
	}
	if p.Belief, err = c.o.Memory.Belief(x.Context(), p.Namespace, x.PathValue("id"), at, uint64(max(x.place("from"), 0))); err != nil {
		return err
	}
	if p.Belief == nil {
		return errNoBelief
	}
	if p.Later > 0 {
		p.Story = memoryAt(p.Namespace, p.ID, p.AsOf)
		p.Story += map[bool]string{true: "?", false: "&"}[p.AsOf == ""] + fmt.Sprintf("from=%d#timeline", p.Later)
	}
	return c.show(x, http.StatusOK, "belief.html", cmp.Or(short(p.About, 60), p.ID), p)
}

var errNoBelief = &refusal{http.StatusNotFound, "Nothing of that name", "This memory holds nothing of that name, or held it at another time."}

// remembers is an error where there is no such namespace: no other name gets further.
func (c *Console) remembers(ctx context.Context, namespace string) error {
	has, err := c.o.Memory.Has(ctx, namespace)
	if err == nil && !has {
		err = errNoBelief
	}
	return err
}

func (c *Console) receipt(x *request) error {
	if err := c.remembers(x.Context(), x.PathValue("namespace")); err != nil {
		return err
	}
	b, err := c.o.Memory.Receipt(x.Context(), x.PathValue("namespace"), x.PathValue("id"))
	if err != nil {
		return &refusal{http.StatusNotFound, "No receipt", err.Error()}
	}
	return x.file(x.PathValue("namespace")+"-"+x.PathValue("id")+".receipt", "text/plain; charset=utf-8", b)
}

// evidenceAt is where evidence is shown that is named s_…/ev4, "" for no such name.
func evidenceAt(name string) string {
	if id, err := writ.ParseEvidenceID(name); err == nil && audit.ValidSession(id.Session) {
		return fmt.Sprintf("/e/%s/%d", id.Session, id.Number)
	}
	return ""
}
