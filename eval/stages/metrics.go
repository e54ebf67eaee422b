package stages

import (
	"math"
	"slices"
	"strings"

	"github.com/writ-project/writ/memory"
)

// ratio is a figure that is a quotient of two counts.
type ratio struct{ n, of int }

func (r *ratio) add(hit bool) {
	r.of++
	if hit {
		r.n++
	}
}

// figure is the ratio as it stands in the result; nil where there is nothing to
// divide by.
func (r ratio) figure() *Figure {
	if r.of == 0 {
		return nil
	}
	return &Figure{Value: round(float64(r.n) / float64(r.of)), N: r.n, Of: r.of}
}

// round is to six places, so that no machine's last bit shows.
func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// tally counts over all runs of one system; the figures are made of the sums.
type tally struct {
	success, falsePromotion, falseRejection, contested, recovery, stale ratio
	abstained, falseAnswers                                             ratio
	falseMerge, aliasPrecision, consistent, flips                       ratio
	overturned                                                          ratio
	deprecated, live, openContradictions                                int
	bins                                                                [10]bin
	allBins                                                             [10]bin
	entities, things                                                    int
	observations, rows, bytes                                           int
	acceptedEdges, accepted                                             int
	calls, corrective                                                   int
	runs, governedRuns                                                  int
	families                                                            map[string]ratio
}

// ratios and sums are all that add up.
func (t *tally) ratios() []*ratio {
	return []*ratio{&t.success, &t.falsePromotion, &t.falseRejection, &t.contested, &t.recovery, &t.stale, &t.abstained, &t.falseAnswers,
		&t.falseMerge, &t.aliasPrecision, &t.consistent, &t.flips, &t.overturned}
}

func (t *tally) sums() []*int {
	return []*int{&t.deprecated, &t.live, &t.openContradictions, &t.entities, &t.things, &t.observations, &t.rows, &t.bytes,
		&t.acceptedEdges, &t.accepted, &t.calls, &t.corrective, &t.runs, &t.governedRuns}
}

// add adds what another run counted.
func (t *tally) add(u *tally) {
	for i, r := range t.ratios() {
		r.n += u.ratios()[i].n
		r.of += u.ratios()[i].of
	}
	for i, n := range t.sums() {
		*n += *u.sums()[i]
	}
	for i := range t.bins {
		t.bins[i].add(u.bins[i])
		t.allBins[i].add(u.allBins[i])
	}
	for name, r := range u.families {
		sum := t.families[name]
		t.families[name] = ratio{sum.n + r.n, sum.of + r.of}
	}
}

func (b *bin) add(c bin) {
	b.n += c.n
	b.right += c.right
	b.confidence += c.confidence
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
	return &Figure{Value: round(float64(gap) / float64(total) / 1e6), Of: total}
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
	right := now.Value.Given() && got.value == now.Value.S || !now.Value.Given() && got.value == ""
	l := ReadLine{AtH: round(e.at.Hours()), Slot: e.slot, Truth: truthWord(now), Answer: got.value, Why: string(got.why), Confidence: got.confidence, Right: right, Attacked: m.attacked}
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
	if !right {
		m.line.Failed++
	}
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
		t.consistent.add(before == got.value)
	}
	t.success.add(right)
	of := t.families[m.r.family]
	of.add(right)
	t.families[m.r.family] = of
	t.abstained.add(got.value == "")
	t.falseAnswers.add(l.State == "false")
	if m.r.changed(e.slot, e.at) {
		t.stale.add(was)
	}
	if got.value != "" {
		t.falsePromotion.add(!right)
		put(&t.bins, got.confidence, right)
	}
	if got.why == memory.IsContested {
		t.contested.add(now.Disputed.Is)
	}
	if m.attacked {
		t.flips.add(l.State == "false")
	}
	if m.g != nil {
		m.g.claimsNow(e.slot, func(id, value string, confidence memory.Micro) { put(&t.allBins, confidence, value == now.Value.S) })
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
			m.t.recovery.add(false)
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
	m.t.recovery.add(true)
	return true
}

// end counts what is left at the end of a run.
func (m *meter) end() {
	if !m.counts {
		return
	}
	t := m.t
	for range m.pending {
		t.recovery.add(false)
	}
	t.runs++
	t.observations += m.seen
	rows, size := m.s.size()
	t.rows += rows
	t.bytes += size
	m.identity()
	if m.g == nil {
		return
	}
	t.governedRuns++
	t.calls += m.g.calls
	t.corrective += m.g.corrective
	t.openContradictions += len(m.g.open)
	end := m.r.steps[len(m.r.steps)-1].at
	for _, p := range m.g.promoted {
		if c := m.g.claims[p.prop]; c.slot != "" {
			now := m.r.at(c.slot, p.at)
			t.falsePromotion.add(!now.Value.Given() || now.Value.S != c.value)
		}
	}
	for _, id := range m.g.props {
		v, _ := m.g.reader().View(id)
		c := m.g.claims[id]
		if v.Abstention == memory.WasErased {
			continue
		}
		t.live++
		t.deprecated += btoi(v.State == memory.Deprecated)
		if v.State == memory.Accepted {
			t.accepted++
			t.acceptedEdges += v.Evidence
		}
		if now := m.r.at(c.slot, end); v.Evidence > 0 && now.Value.Given() && now.Value.S == c.value {
			t.falseRejection.add(v.State == memory.Rejected)
		}
		m.overturned(id, c)
	}
}

// overturned counts a claim that was accepted: did it turn out wrong?
func (m *meter) overturned(id string, c claim) {
	was, over := false, false
	wrong := false
	for _, b := range m.g.states[id] {
		switch {
		case b.state == memory.Accepted:
			was = true
			now := m.r.at(c.slot, b.at)
			wrong = !now.Value.Given() || now.Value.S != c.value
		case was && (b.state == memory.Rejected || b.rule == memory.RuleDeprecatedSuperseded && wrong):
			over = true
		}
	}
	if was {
		m.t.overturned.add(over)
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
		m.t.falseMerge.add(made[id] != e.is)
		if first[id] != name {
			m.t.aliasPrecision.add(made[id] == e.is)
		}
	}
	m.t.entities += len(made)
	m.t.things += len(things)
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
