package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/audit"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/console"
	"github.com/writ-project/writ/internal/memoryserver"
	"github.com/writ-project/writ/internal/private"
	"github.com/writ-project/writ/internal/story"
	"github.com/writ-project/writ/memory"
)

// consoleMemory is what the console reads of memories: what the commands of writ memory read
// and say. It writes nothing.
type consoleMemory struct {
	*files
	mu   sync.Mutex
	last *remembered // the one that was read last, of those that are not mounted
}

func (m *consoleMemory) mounted(namespace string) bool {
	return m.keeps != nil && m.memory.Namespace == namespace
}

func (m *consoleMemory) Namespaces(ctx context.Context) (out []console.Namespace, err error) {
	all, err := namespaces(ctx, m.store)
	out = each(all, func(l namespaceLine) console.Namespace {
		return console.Namespace{Name: l.Namespace, Records: l.Records, Mode: string(l.Mode), Policy: policyName(l.Policy), Mounted: m.mounted(l.Namespace)}
	})
	if m.keeps != nil && !slices.ContainsFunc(out, func(n console.Namespace) bool { return n.Mounted }) {
		out = append(out, console.Namespace{Name: m.memory.Namespace, Mode: m.memory.Mode, Policy: "not begun", Mounted: true})
	}
	slices.SortStableFunc(out, func(a, b console.Namespace) int {
		return cmp.Compare(map[bool]int{true: 0, false: 1}[a.Mounted], map[bool]int{true: 0, false: 1}[b.Mounted])
	})
	return out, err
}

func (m *consoleMemory) Has(ctx context.Context, namespace string) (bool, error) {
	if !memoryserver.ValidNamespace(namespace) {
		return false, nil
	}
	head, err := m.store.Head(ctx, memoryserver.LogOf(namespace))
	return head > 0 || m.mounted(namespace), err
}

// of opens a namespace for reading: the mounted one where it is kept already.
func (m *consoleMemory) of(ctx context.Context, namespace string) (*remembered, error) {
	r := &remembered{dir: m.state, st: m.store, namespace: namespace, principal: operator()}
	if m.mounted(namespace) {
		r.keeper = m.keeps
		return r, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil || m.last.namespace != namespace {
		if err := r.load(ctx, toRead); err != nil {
			return nil, err
		}
		m.last = r
	}
	return m.last, nil
}

// at calls f with a reader of a namespace as of a time. Nobody else gets at it meanwhile.
func (m *consoleMemory) at(ctx context.Context, namespace string, at time.Time, f func(r *remembered, x *memory.Reader)) error {
	r, err := m.of(ctx, namespace)
	if err != nil {
		return err
	}
	return r.read(ctx, func(x *memory.Reader) error {
		x.AsOf = at
		f(r, x)
		return nil
	})
}

func (m *consoleMemory) Made(ctx context.Context, namespace string, at time.Time, from, to uint64, word string) (out []console.Claim, err error) {
	err = m.at(ctx, namespace, at, func(_ *remembered, x *memory.Reader) { out = madeBy(x, from, to, word) })
	return out, err
}

// madeBy are what the records from … to-1 made, the newest first.
func madeBy(x *memory.Reader, from, to uint64, word string) (out []console.Claim) {
	for n := to - 1; n >= from && n > 0; n-- {
		switch d := decisionOf(x, n); {
		case d == nil || !x.AsOf.IsZero() && d.At.Time().After(x.AsOf):
		case !erased(d):
			out = append(out, madeIn(x, n, word)...)
		case word == "" || word == "erasure":
			out = append(out, console.Claim{ID: fmt.Sprintf("dec_%d", n), Word: "erasure", N: n, At: d.At.Time(), By: d.Principal})
		}
	}
	return out
}

// madeIn are the claims that one record made, or its quotes where it made none.
func madeIn(x *memory.Reader, n uint64, word string) (out []console.Claim) {
	claims := 0
	for id := range idsMade("prop", n) {
		v, ok := x.View(id)
		if !ok {
			break
		}
		if claims++; word == "" || word == string(v.Status) {
			out = append(out, claimOf(x, &v))
		}
	}
	if claims > 0 {
		return out
	}
	for id := range idsMade("obs", n) {
		rec, ok := x.Get(id)
		if !ok {
			break
		}
		if o := rec.Observation; len(o.Supports) == 0 && (word == "" || word == noteWord(o)) {
			out = append(out, noteOf(n, o))
		}
	}
	return out
}

// idsMade are the ids that one record can have given, in their order.
func idsMade(prefix string, n uint64) func(func(string) bool) {
	return func(yield func(string) bool) {
		for i, id := 1, fmt.Sprintf("%s_%d", prefix, n); yield(id); {
			i++
			id = fmt.Sprintf("%s_%d_%d", prefix, n, i)
		}
	}
}

func decisionOf(x *memory.Reader, n uint64) *memory.Decided {
	rec, _ := x.Get(fmt.Sprintf("dec_%d", n))
	return rec.Decision
}

// erased reports whether a decision took what was remembered.
func erased(d *memory.Decided) bool {
	return d != nil && d.Tool == "operator."+memory.CommandErase && d.Status == writ.Accepted
}

func textIn(d *memory.Data) string {
	switch {
	case d == nil || d.Text == "":
		return ""
	case d.Cut:
		return strings.TrimSuffix(d.Text, " …") + " …"
	}
	return d.Text
}

// claimOf is a claim as a list shows it.
func claimOf(x *memory.Reader, v *memory.View) console.Claim {
	out := console.Claim{ID: v.ID, Word: string(v.Status), Quote: textIn(v.Quote), Caption: textIn(&v.Caption)}
	fmt.Sscanf(v.ID, "prop_%d", &out.N)
	if d := decisionOf(x, out.N); d != nil {
		out.At = d.At.Time()
	}
	out.About = question(x, v)
	switch {
	case v.Object != nil:
		out.Value = v.Object.Value
	case v.Entity != "":
		out.Value = nameOf(x, v.Entity)
	}
	if rec, _ := x.Get(v.By); rec.Observation != nil {
		out.By = saidBy(rec.Observation)
		if v.Quote == nil && rec.Observation.Status == memory.Ingested { // the agent's own word
			out.Quote = textIn(&rec.Observation.Text)
		}
	} else if rec.Decision != nil {
		out.By = rec.Decision.Principal + ", who upheld it"
	}
	switch {
	case v.ReplacedBy != "":
		out.Beside, out.Others = "replaced by", []string{v.ReplacedBy}
	case len(v.Rivals) > 0:
		out.Beside, out.Others = "disputed by", v.Rivals[:min(len(v.Rivals), 10)]
	case v.Denied > 0:
		out.Note = fmt.Sprintf("%d other values are only reported", v.Denied)
	default:
		out.Note = x.Alone(v)
	}
	if !x.AsOf.IsZero() && v.Status != memory.Gone && erasedBy(x, v.ID) {
		out.Note = strings.TrimPrefix(out.Note+"; its words were erased since", "; ")
	}
	return out
}

func question(x *memory.Reader, v *memory.View) string {
	if v.Subject == "" {
		return ""
	}
	out := nameOf(x, v.Subject)
	if v.Predicate != "" {
		out += ": " + strings.ReplaceAll(v.Predicate, "_", " ")
	}
	return out
}

func nameOf(x *memory.Reader, entity string) string {
	rec, _ := x.Get(entity)
	if e := rec.Entity; e != nil && len(e.Names) > 0 {
		return e.Names[0].Value
	} else if e != nil && e.Type == "self" {
		return "the user"
	}
	return entity
}

func saidBy(o *memory.Observed) string {
	return o.Source + ", " + strings.ReplaceAll(string(o.Class), "_", " ")
}

// noteWord is what a quote is worth that bears no claim out.
func noteWord(o *memory.Observed) string {
	if o.Status == memory.Erased {
		return string(memory.Gone)
	}
	return string(o.Trust)
}

func noteOf(n uint64, o *memory.Observed) console.Claim {
	out := console.Claim{ID: o.ID, Word: noteWord(o), N: n, At: o.RecordedAt.Time(), Quote: textIn(&o.Text), By: saidBy(o), Note: "a quote by itself: no claim rests on it"}
	if o.Status == memory.Quarantined || o.Status == memory.Distrusted {
		out.Note = string(o.Status) + ": it supports nothing"
	}
	return out
}

func (m *consoleMemory) Found(ctx context.Context, namespace string, at time.Time, words string) (out []console.Claim, note []string, err error) {
	err = m.at(ctx, namespace, at, func(_ *remembered, x *memory.Reader) {
		res := x.Recall(memory.Ask{Query: words, All: true, Limit: 50, Bytes: 50 * 700})
		for i := range res.Items {
			it := &res.Items[i]
			c := console.Claim{ID: it.ID, Word: string(it.Trust), Quote: it.Text, By: it.From, About: it.About, Value: it.Value, Note: it.Note}
			if rec, _ := x.Get(it.Observation); rec.Observation != nil {
				c.At = rec.Observation.RecordedAt.Time()
			}
			if v, ok := x.View(it.ID); ok {
				c.Caption = textIn(&v.Caption)
			}
			out = append(out, c)
		}
		if len(res.Items) == 0 {
			note = append(note, abstentions[res.Abstention])
		}
		for _, h := range res.HeldBack {
			note = append(note, fmt.Sprintf("%d more are not shown: %s", h.Count, h.Reason))
		}
	})
	return out, note, err
}

func (m *consoleMemory) Sources(ctx context.Context, namespace string) (out []console.Source, err error) {
	err = m.at(ctx, namespace, time.Time{}, func(_ *remembered, x *memory.Reader) {
		for _, s := range x.State.Sources() {
			state := "heard"
			if s.Suspended {
				state = "suspended"
			}
			if s.DistrustedSince != nil {
				state += ", distrusted since " + s.DistrustedSince.String()
			}
			out = append(out, console.Source{ID: s.ID, Class: strings.ReplaceAll(string(s.Class), "_", " "), State: state, By: s.RegisteredBy})
		}
	})
	return out, err
}

// perStory is how much of a timeline is told at once.
const perStory = 50

func (m *consoleMemory) Belief(ctx context.Context, namespace, id string, at time.Time, from uint64) (b *console.Belief, err error) {
	if strings.HasPrefix(id, "dec_") {
		return m.erasure(ctx, namespace, id)
	}
	err = m.at(ctx, namespace, at, func(_ *remembered, x *memory.Reader) {
		if e, ok := x.Explain(id); ok {
			b = beliefOf(x, &e, from)
		} else if rec, _ := x.Get(id); rec.Observation != nil {
			b = quoteOf(x, rec.Observation)
		}
	})
	if b == nil {
		return nil, err
	}
	b.Commands = m.commands(namespace, b)
	for i := range b.Said {
		if st := &b.Said[i]; st.Erased && m.stands(ctx, st.Evidence) {
			st.Stands = st.Evidence
		}
	}
	return b, err
}

// quoteOf is all there is to say of a quote, with the claims that it bears out.
func quoteOf(x *memory.Reader, o *memory.Observed) *console.Belief {
	b := &console.Belief{Claim: noteOf(0, o), Means: "it is a quote, and answers no question by itself"}
	b.Said = []console.Statement{{Quote: b.Quote, By: b.By, ID: o.ID, Evidence: o.Evidence, At: b.At, Trust: o.Level, Erased: o.Status == memory.Erased}}
	if o.SourceRef != nil {
		b.Facts = append(b.Facts, console.Fact{Name: "The agent said it is from", Text: o.SourceRef.Text})
	}
	for _, p := range o.Supports {
		if v, ok := x.View(p); ok {
			b.Note = ""
			b.Values = append(b.Values, claimOf(x, &v))
		}
	}
	return b
}

// stands says whether the gateway's record of a session holds what it saw as evidence.
func (m *consoleMemory) stands(ctx context.Context, evidence string) bool {
	id, err := writ.ParseEvidenceID(evidence)
	if err != nil || !audit.ValidSession(id.Session) {
		return false
	}
	head, err := m.store.Head(ctx, id.Session)
	if err != nil {
		return false
	}
	rec, err := story.Evidence(ctx, m.store, id.Session, id.Number, head)
	return err == nil && slices.ContainsFunc([]string{"result", "error", "turn"}, func(name string) bool { _, kept := rec.Value(name); return kept })
}

// commands are those that a person would type of one thing that is remembered.
func (m *consoleMemory) commands(namespace string, b *console.Belief) (out []console.Command) {
	where := " --state " + private.Quote(m.state) + " --namespace " + namespace
	if b.Word != string(memory.Gone) {
		which := " --observation "
		if isClaim(b.ID) {
			which = " --proposition "
		}
		out = append(out, console.Command{Does: "To see what would be erased with it, and nothing else", Line: "writ memory erase" + where + which + b.ID + " --preview"},
			console.Command{Does: "To erase it for good, with a receipt", Line: "writ memory erase" + where + which + b.ID + " --reason user-request --out receipt.txt"})
	}
	if b.Word == string(memory.Contested) {
		out = append(out, console.Command{Does: "To rule on it", Line: "writ memory resolve" + where + " " + b.ID + " --uphold"})
	}
	return out
}

func beliefOf(x *memory.Reader, e *memory.Explanation, from uint64) *console.Belief {
	v := &e.Proposition
	b := &console.Belief{Claim: claimOf(x, v), Means: abstentions[v.Abstention], Because: because(v), Changes: e.Changes}
	for _, id := range v.Rivals {
		if w, ok := x.View(id); ok && w.Level != v.Level {
			b.Because = map[bool]string{true: "it is the later of two words that say otherwise, and of the lower level", false: "a later word of a lower level says otherwise"}[w.Level > v.Level] + " (" + string(v.Rule) + ")"
		}
	}
	for _, s := range e.Statements {
		st := console.Statement{Quote: textIn(s.Quote), By: s.Source + ", " + strings.ReplaceAll(string(s.Class), "_", " "), ID: s.Observation, Evidence: s.Evidence, At: s.RecordedAt.Time(), Trust: s.Level}
		if rec, _ := x.Get(s.Observation); rec.Observation != nil {
			st.Erased = rec.Observation.Status == memory.Erased
		}
		switch {
		case s.Resolution != "":
			st.Note = "it counts no more: " + s.Resolution
		case s.Inference:
			st.Note = "it does not bear the claim out"
		}
		b.Said = append(b.Said, st)
	}
	for _, o := range e.Values {
		if w, ok := x.View(o.Proposition); ok {
			b.Values = append(b.Values, claimOf(x, &w))
		}
	}
	if len(e.Unchecked) > 0 {
		b.Facts = append(b.Facts, console.Fact{Name: "Erased, so that they cannot be made again", Text: someOf(e.Unchecked)})
	}
	// What was believed before is of its question, not of this answer to it.
	b.Timeline, b.Later = momentsOf(x, cmp.Or(v.Slot, v.ID), from)
	return b
}

// momentsOf are what happened to something from a record on, and the record with which that goes on,
// 0 where it ended.
func momentsOf(x *memory.Reader, about string, from uint64) (out []console.Moment, later uint64) {
	told := x.Timeline(about, from, perStory)
	for i := range told.Moments {
		t := &told.Moments[i]
		if !x.AsOf.IsZero() && t.At.Time().After(x.AsOf) {
			continue
		}
		mo := console.Moment{At: t.At.Time(), What: t.ID + " " + happened[t.What], Quote: textIn(t.Text), Word: string(t.State)}
		if t.State != "" {
			mo.Because = stoodBecause(x, t)
		} else if t.Other != "" {
			mo.What += " " + t.Other
		}
		out = append(out, mo)
	}
	if !told.More {
		return out, 0
	}
	if last := told.Moments[len(told.Moments)-1]; x.AsOf.IsZero() || !last.At.Time().After(x.AsOf) {
		later = last.Record + 1
	}
	return out, later
}

// happened says what a moment is; what is not in it is its own word.
var happened = map[string]string{"value": "was put by the model", "belief": "stood as", "observation": "was said", "supports": "was given for", "resolved": "counts no more for",
	"supersedes": "corrects", "contradicts": "was given against", "erased": "was erased", "quarantined": "was held back", "distrusted": "is believed no more"}

// erasure is what was erased by one decision, as its receipt says it.
func (m *consoleMemory) erasure(ctx context.Context, namespace, id string) (*console.Belief, error) {
	var from *remembered
	err := m.at(ctx, namespace, time.Time{}, func(r *remembered, x *memory.Reader) {
		if d, _ := x.Get(id); erased(d.Decision) {
			from = r
		}
	})
	if from == nil || err != nil {
		return nil, err
	}
	rec, err := from.erased(ctx, id)
	if err != nil {
		return nil, err
	}
	b := &console.Belief{Claim: console.Claim{ID: rec.Decision, Word: "erasure", N: rec.Event, At: rec.At.Time(), By: rec.Authority},
		Means: "its texts are gone from the memory's own log, which still verifies"}
	if slices.Contains(rec.Gaps, memoryserver.GapSessions) {
		b.Means += ". The record of the sessions in which the gateway saw them was not reached: `writ audit redact` takes them there, once these ended"
	}
	for _, f := range []console.Fact{
		{Name: "Reason", Text: rec.Reason}, {Name: "Records", Text: fmt.Sprint(len(rec.Records))}, {Name: "Observations", Text: someOf(rec.Observations)},
		{Name: "Claims", Text: someOf(rec.Propositions)}, {Name: "Names of", Text: someOf(rec.Entities)},
		{Name: "Seen by the gateway as", Text: someOf(rec.Evidence)}, {Name: "Not reached", Text: strings.ReplaceAll(strings.Join(rec.Gaps, ", "), "_", " ")},
	} {
		if f.Text != "" {
			b.Facts = append(b.Facts, f)
		}
	}
	saw := slices.Clone(rec.Sessions)
	for _, e := range rec.Evidence {
		session, _, _ := strings.Cut(e, "/")
		saw = append(saw, session)
	}
	slices.Sort(saw)
	saw = slices.DeleteFunc(slices.Compact(saw), func(s string) bool { return !audit.ValidSession(s) })
	if n := len(saw); n > 0 {
		b.Commands = append(b.Commands, console.Command{Does: "To see which of these sessions can be taken out of their record too, and do nothing", Line: "writ audit redact --state " + private.Quote(m.state) + " " + strings.Join(saw[:min(n, 20)], " ") + " --preview"})
	}
	b.Commands = append(b.Commands, console.Command{Does: "To check a receipt against this log", Line: "writ memory receipt verify --state " + private.Quote(m.state) + " FILE"})
	return b, nil
}

func (m *consoleMemory) Receipt(ctx context.Context, namespace, id string) ([]byte, error) {
	r, err := m.of(ctx, namespace)
	if err != nil {
		return nil, err
	}
	rec, err := r.erased(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := rec.Check(ctx, m.store); err != nil { // it was cut off: finishing it is no reading
		return nil, cli.Fail(cli.ExitData, "", "the erasure is not finished; writ memory receipt issue %s --namespace %s finishes it, and prints its receipt", rec.Decision, namespace)
	}
	return r.signed(rec)
}
