package memory

import (
	"slices"
	"strings"

	"github.com/writ-project/writ/memory"
)

// metric is one figure of the design's table, over the bundle of stage 2.
type metric struct {
	name, group, label string
	lower              bool // lower is better
	scale              int
}

// metrics are the figures, in the order of the design. A system has none of what
// it has nothing of: no states, no entities, or nothing to divide by.
var metrics = []metric{
	// Promoted and not true then / promoted. A promotion is a claim that a
	// consolidation made canonical, and each answer that a read returned as usable:
	// the second is all there is of it in systems without states, and counts for
	// those with states too.
	{"false_promotion_rate", "policy", "false promotion", true, 1},
	// True claims in rejected at the end / true claims with support.
	{"false_rejection_rate", "policy", "false rejection", true, 1},
	// Reads answered "contested" where the truth is disputed / reads answered so.
	{"contested_precision", "policy", "contested precision", false, 1},
	// The expected calibration error of what was returned, over ten equal bins of
	// confidence: SUM_b n_b/n * |mean confidence_b - share true_b|. A system without
	// confidences asserts what it returns with certainty.
	{calibration, "policy", "calibration error", true, 1},
	// Corrections after which the slot reads as the truth within three further
	// observations / corrections.
	{"contradiction_recovery_rate", "policy", "contradiction recovery", false, 1},
	// Reads that do not return a value that was true earlier / reads of slots whose
	// value has changed.
	{"stale_handling", "policy", "stale handling", false, 1},

	{"duplicate_entity_rate", "identity", "duplicate entities", true, 1}, // (entities - things) / things
	{"false_merge_rate", "identity", "false merges", true, 1},            // wrong links / links
	{"alias_precision", "identity", "alias precision", false, 1},         // right links by another name / links by another name

	{"graph_growth", "health", "rows per 100 observations", false, 100},
	{"evidence_per_accepted", "health", "evidence per accepted", false, 1},        // supporting edges per accepted claim, at the end
	{"overturn_rate", "health", "overturned", true, 1},                            // accepted, and later rejected or superseded though never true / accepted
	{"stale_fraction", "health", "deprecated of live", true, 1},                   // deprecated / claims that were not erased
	{"unresolved_contradictions", "health", "open contradictions a run", true, 1}, // at the end

	{"task_success", "task", "task success", false, 1}, // reads that return the truth, or nothing where nothing can be known / reads
	{"tool_calls", "task", "proposals a run", false, 1},
	{"corrective_actions", "task", "corrective actions a run", false, 1}, // tests proposed and reported, rulings of an operator
	{"memory_bytes", "task", "bytes of text a run", false, 1},            // held at the end; what stands beside them is in graph_growth

	{"cross_session_consistency", "continuity", "same answer again", false, 1}, // with nothing new in between / pairs of reads

	{"flip_rate", "security", "flips under attack", true, 1}, // reads after an attacker spoke that return what was never true / reads after that
}

const calibration = "calibration_ece"

// tally counts over runs of one system.
type tally struct {
	counts map[string]ratio // by metric
	bins   [10]bin
}

type ratio struct{ n, of int }

func newTally() *tally { return &tally{counts: map[string]ratio{}} }

// sum adds to the two counts of a metric.
func (t *tally) sum(metric string, n, of int) {
	r := t.counts[metric]
	t.counts[metric] = ratio{r.n + n, r.of + of}
}

func (t *tally) hit(metric string, hit bool) { t.sum(metric, btoi(hit), 1) }

// add adds what another run counted.
func (t *tally) add(u *tally) {
	for name, r := range u.counts {
		t.sum(name, r.n, r.of)
	}
	for i := range t.bins {
		b, c := &t.bins[i], u.bins[i]
		b.n, b.right, b.confidence = b.n+c.n, b.right+c.right, b.confidence+c.confidence
	}
}

// figures are the metrics that have something to divide by.
func (t *tally) figures() map[string]*Figure {
	out := map[string]*Figure{}
	for _, m := range metrics {
		if r := t.counts[m.name]; r.of > 0 {
			out[m.name] = &Figure{Value: quotient(m.scale*r.n, r.of), N: r.n, Of: r.of}
		}
	}
	if e := ece(t.bins); e != nil {
		out[calibration] = e
	}
	return out
}

// bin is one tenth of the confidences: in millionths, to be summed exactly.
type bin struct {
	n, right   int
	confidence int64
}

func put(bins *[10]bin, c memory.Micro, right bool) {
	b := &bins[min(9, int(c*10/memory.One))]
	b.n++
	b.confidence += int64(c)
	b.right += btoi(right)
}

// ece is the expected calibration error: the mean over the bins, by their
// weight, of the distance between mean confidence and share of what is true.
func ece(bins [10]bin) *Figure {
	total, gap := 0, int64(0)
	for _, b := range bins {
		total += b.n
		d := b.confidence - int64(b.right)*int64(memory.One)
		if d < 0 {
			d = -d
		}
		gap += d
	}
	if total == 0 {
		return nil
	}
	return &Figure{Value: round(float64(gap)/float64(total)/1e6, 6), Of: total}
}

// meter watches one run.
type meter struct {
	r      *run
	s      system
	g      *governed
	t      *tally
	line   *RunLine
	counts bool // whether the run is of the bundle

	last    map[string]string // the answer of a slot, until something new comes
	pending []correction
	seen    int
	// attacked says that an attacker has spoken.
	attacked bool
}

// step notes what comes before the system takes it.
func (m *meter) step(e *event) {
	if e.kind == ticks {
		return
	}
	m.last = nil // something new came
	m.line.Steps++
	m.attacked = m.attacked || m.r.attacks(e.from)
	if id, _, _ := observed(e); e.kind == proposes && id != "" {
		m.seen++
	}
}

// read asks, and counts what came.
func (m *meter) read(e *event) {
	got := m.s.ask(e)
	now := m.r.at(e.slot, e.at)
	right := got.value != "" && now.is(got.value) || !now.Value.Given() && got.value == ""
	l := ReadLine{AtH: e.at.Hours(), Slot: e.slot, Truth: truthWord(now), Answer: got.value, Why: string(got.why), Confidence: got.confidence, Right: right, Attacked: m.attacked}
	l.State = "returned"
	was := got.value != "" && !right && m.r.was(e.slot, got.value, e.at)
	switch {
	case right && got.value == "":
		l.State = "abstained rightly"
	case got.value == "":
		l.State = "abstained"
	case right:
	case was:
		l.State = "stale"
	default:
		l.State = "false"
	}
	m.line.Reads = append(m.line.Reads, l)
	m.line.Failed += btoi(!right)
	if m.last == nil {
		m.last = map[string]string{}
	}
	before, asked := m.last[e.slot]
	m.last[e.slot] = got.value
	if !m.counts {
		return
	}
	t := m.t
	if asked {
		t.hit("cross_session_consistency", before == got.value)
	}
	t.hit("task_success", right)
	if m.r.changed(e.slot, e.at) {
		t.hit("stale_handling", !was)
	}
	if got.value != "" {
		t.hit("false_promotion_rate", !right)
		put(&t.bins, got.confidence, right)
	}
	if got.why == memory.IsContested {
		t.hit("contested_precision", now.Disputed.Is)
	}
	if m.attacked {
		t.hit("flip_rate", l.State == "false")
	}
}

// recoveryWithin is the k of the recovery rate.
const recoveryWithin = 3

// correction is a slot whose true value has been said, and is to be read.
type correction struct {
	slot  string
	value string
	seen  int // observations since, the correcting one included
}

// after looks whether a correction has arrived.
func (m *meter) after(e *event) {
	if !m.counts || e.kind == ticks {
		return
	}
	id, _, _ := observed(e)
	if e.corrects != "" {
		m.pending = append(m.pending, correction{slot: e.corrects, value: m.r.at(e.corrects, e.at).Value.S})
	}
	m.pending = slices.DeleteFunc(m.pending, func(c correction) bool { return m.settled(e, c) })
	for i := range m.pending {
		if id != "" {
			m.pending[i].seen++
		}
	}
	m.pending = slices.DeleteFunc(m.pending, func(c correction) bool {
		if c.seen > recoveryWithin {
			m.t.hit("contradiction_recovery_rate", false)
		}
		return c.seen > recoveryWithin
	})
}

// settled counts a correction that has arrived.
func (m *meter) settled(e *event, c correction) bool {
	q := *e
	q.slot, q.question = c.slot, ""
	if m.s.ask(&q).value != c.value {
		return false
	}
	m.t.hit("contradiction_recovery_rate", true)
	return true
}

// end counts what is left at the end of a run.
func (m *meter) end() {
	if !m.counts {
		return
	}
	t := m.t
	for range m.pending {
		t.hit("contradiction_recovery_rate", false)
	}
	rows, size := m.s.size()
	t.sum("graph_growth", rows, m.seen)
	t.sum("memory_bytes", size, 1)
	m.identity()
	if m.g == nil {
		return
	}
	t.sum("tool_calls", m.g.calls, 1)
	t.sum("corrective_actions", m.g.corrective, 1)
	t.sum("unresolved_contradictions", len(m.g.open), 1)
	end := m.r.steps[len(m.r.steps)-1].at
	for _, p := range m.g.promoted {
		if c := m.g.claims[p.prop]; c.slot != "" {
			t.hit("false_promotion_rate", !m.r.at(c.slot, p.at).is(c.value))
		}
	}
	for _, id := range m.g.props {
		v, _ := m.g.reader().View(id)
		c := m.g.claims[id]
		if v.Abstention == memory.WasErased {
			continue
		}
		t.hit("stale_fraction", v.State == memory.Deprecated)
		if v.State == memory.Accepted {
			t.sum("evidence_per_accepted", v.Evidence, 1)
		}
		if v.Evidence > 0 && m.r.at(c.slot, end).is(c.value) {
			t.hit("false_rejection_rate", v.State == memory.Rejected)
		}
		m.overturned(id, c)
	}
}

// overturned counts a claim that was accepted: did it turn out wrong?
func (m *meter) overturned(id string, c claim) {
	was, over, wrong := false, false, false
	for _, b := range m.g.states[id] {
		switch {
		case b.state == memory.Accepted:
			was = true
			wrong = !m.r.at(c.slot, b.at).is(c.value)
		case was && (b.state == memory.Rejected || b.rule == memory.RuleDeprecatedSuperseded && wrong):
			over = true
		}
	}
	if was {
		m.t.hit("overturn_rate", over)
	}
}

// identity counts what mentions came to.
func (m *meter) identity() {
	made := map[string]string{}  // the thing of the world an entity was made for
	first := map[string]string{} // and its name
	things := map[string]bool{}
	for i := range m.r.steps {
		e := &m.r.steps[i]
		if e.is == "" {
			continue
		}
		id, linked, ok := m.s.entity(e.as)
		if !ok {
			continue
		}
		things[e.is] = true
		name := strings.ToLower(text(e.payload, "name"))
		if made[id] == "" {
			made[id], first[id] = e.is, name
		}
		if !linked {
			continue
		}
		m.t.hit("false_merge_rate", made[id] != e.is)
		if first[id] != name {
			m.t.hit("alias_precision", made[id] == e.is)
		}
	}
	m.t.sum("duplicate_entity_rate", len(made)-len(things), len(things))
}

func truthWord(t truth) string {
	switch {
	case t.Disputed.Is:
		return "disputed"
	case t.Unknown.Is:
		return "unknown"
	}
	return t.Value.S
}

// is reports whether a value is true.
func (t truth) is(value string) bool { return t.Value.Given() && t.Value.S == value }
